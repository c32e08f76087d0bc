// What the tape promises: sums, leaves, unused outputs, and errors.
#include "heddle/autograd/tape.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "heddle/ops/elementwise.h"
#include "heddle/ops/norm.h"
#include "heddle/ops/reduce.h"
#include "tests/base/temporary.h"

namespace heddle {
namespace {

using Floats = std::vector<float>;

struct Variable {
  Leaf leaf;
  Tensor x;
  explicit Variable(const Floats& values)
      : x(Tensor::from(values, {1, static_cast<int64_t>(values.size())}).with_leaf(&leaf)) {}
  Floats grad() const { return leaf.grad.to_floats(); }
};

TEST(Tape, gradients_of_several_uses_are_summed) {
  Variable v({1, 2});
  const Tensor y = scale(v.x, 3);
  backward(sum(add(mul(y, y), y)));  // 9 x^2 + 3 x
  EXPECT_EQ(v.grad(), (Floats{21, 39}));
}

TEST(Tape, leaves_add_up_over_two_backward_passes) {
  Variable v({1});
  backward(sum(scale(v.x, 3)));
  backward(sum(scale(v.x, 4)), 2);
  EXPECT_EQ(v.grad(), Floats{11});
}

TEST(Tape, nothing_is_recorded_without_grad) {
  Variable v({1});
  {
    const NoGrad off;
    scale(v.x, 2);
    EXPECT_FALSE(needs_grad({&v.x}));
  }
  EXPECT_TRUE(tape_names().empty());
  EXPECT_TRUE(is_recording());
}

TEST(Tape, constants_are_not_recorded) {
  scale(Tensor::full({2, 2}, 1), 2);
  EXPECT_TRUE(tape_names().empty());
}

std::vector<Tensor> square_and_cube(std::span<const Tensor> in) {
  const Tensor square = mul(in[0], in[0]);
  return {mul(square, in[1]), add(square, in[0])};
}

TEST(Tape, what_is_computed_again_has_the_gradients_of_what_was_kept) {
  Variable a({1, 2, 3}), b({4, 5, 6}), c({1, 2, 3}), d({4, 5, 6});
  const auto kept = square_and_cube(std::vector{scale(a.x, 2), b.x});
  backward(sum(add(mul(kept[0], kept[1]), kept[1])));
  const auto outputs = recompute(std::vector{scale(c.x, 2), d.x}, square_and_cube);
  EXPECT_EQ(tape_names(), (std::vector<std::string>{"scale", "recompute"}));
  backward(sum(add(mul(outputs[0], outputs[1]), outputs[1])));
  EXPECT_EQ(a.grad(), c.grad());
  EXPECT_EQ(b.grad(), d.grad());
  EXPECT_TRUE(is_recording());
  EXPECT_TRUE(tape_names().empty());
}

TEST(Tape, leaves_inside_what_is_computed_again_get_gradients) {
  Variable x({1, 2}), w({3, 4});
  const Tensor in = scale(x.x, 1);
  const auto y = recompute(std::span(&in, 1), [&](std::span<const Tensor> inputs) {
    return std::vector{mul(inputs[0], w.x), inputs[0]};  // the second is the input itself
  });
  backward(sum(add(y[0], y[1])));
  EXPECT_EQ(w.grad(), (Floats{1, 2}));
  EXPECT_EQ(x.grad(), (Floats{4, 5}));
}

TEST(Tape, nothing_is_kept_to_compute_again_without_grad) {
  Variable v({1, 2});
  const NoGrad off;
  const auto y = recompute(std::span(&v.x, 1),
                           [](std::span<const Tensor> in) { return std::vector{scale(in[0], 2)}; });
  EXPECT_EQ(y[0].to_floats(), (Floats{2, 4}));
  EXPECT_TRUE(tape_names().empty());
}

TEST(Tape, unused_outputs_get_no_gradient) {
  Variable v({1, 2}), w({3, 4});
  scale(w.x, 2);
  backward(sum(v.x));
  EXPECT_FALSE(w.leaf.grad.defined());
  EXPECT_EQ(v.grad(), (Floats{1, 1}));
  EXPECT_TRUE(tape_names().empty());
}

TEST(Tape, a_second_backward_from_the_same_loss_is_an_error) {
  Variable v({1});
  const Tensor loss = sum(v.x);
  backward(loss);
  EXPECT_THROW(backward(loss), Error);
}

TEST(Tape, a_tensor_of_an_emptied_tape_is_an_error) {
  Variable v({1});
  const Tensor old = scale(v.x, 2);
  clear_tape();
  scale(v.x, 5);
  EXPECT_THROW(scale(old, 3), Error);
  clear_tape();
}

TEST(Tape, a_tensor_of_another_threads_tape_is_an_error) {
  Variable v({1, 2}), w({3, 4});
  Tensor theirs;
  const auto record_there = [&] { theirs = sum(scale(v.x, 2)); };
  std::thread(record_there).join();
  for (const bool has_steps : {false, true}) {  // of this thread, with the numbers of theirs
    if (has_steps) sum(scale(w.x, 3));
    expect_error(ErrorKind::internal, {"not on the tape of this thread"},
                 [&] { backward(theirs); });
    expect_error(ErrorKind::internal, {"another thread's"}, [&] { scale(theirs, 2); });
  }
  clear_tape();
  EXPECT_FALSE(v.leaf.grad.defined());
  EXPECT_FALSE(w.leaf.grad.defined());
}

// An op whose gradient has the shape that is given.
Tensor op_with_gradient(const Tensor& x, const Shape& shape) {
  return record("own", {x}, x.clone(),
                [shape](const Tensor&) -> Grads { return {Tensor::full(shape, 1)}; });
}

TEST(Tape, a_gradient_of_another_shape_than_its_input_is_an_error_that_names_the_op) {
  Variable v({1, 2, 3, 4});
  for (const Shape& shape : {Shape{1, 2}, Shape{5, 4}, Shape{2, 2}}) {
    expect_error(ErrorKind::shape, {"op 'own'", "input 1", "[1, 4]", shape.str()},
                 [&] { backward(sum(op_with_gradient(v.x, shape))); });
    expect_error(ErrorKind::shape, {"op 'own'"},
                 [&] { backward(sum(op_with_gradient(scale(v.x, 2), shape))); });
    EXPECT_TRUE(tape_names().empty());
  }
  EXPECT_FALSE(v.leaf.grad.defined());
  op_with_gradient(Tensor::full({1, 4}, 1), {2, 2});  // a constant needs none
  backward(sum(op_with_gradient(v.x, {1, 4})));
  v.leaf.grad = Tensor::full({1, 2}, 1);
  expect_error(ErrorKind::shape, {"[1, 2]", "[1, 4]"}, [&] { backward(sum(v.x)); });
}

TEST(Tape, the_first_output_that_is_not_finite_names_op_and_layer) {
  Variable v({1000});
  set_check_finite(true);
  const std::string name = "encoder.layers.3";
  std::string message;
  try {
    const LayerName layer(name);
    scale(v.x, 1e38f);
  } catch (const Error& e) {
    message = e.what();
  }
  set_check_finite(false);
  clear_tape();
  EXPECT_NE(message.find("'scale' in layer 'encoder.layers.3'"), std::string::npos) << message;
}

}  // namespace
}  // namespace heddle
