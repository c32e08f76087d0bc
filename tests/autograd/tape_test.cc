// What the tape promises: sums, leaves, unused outputs, and errors.
#include "heddle/autograd/tape.h"

#include <gtest/gtest.h>

#include <cmath>

#include "heddle/ops/elementwise.h"
#include "heddle/ops/norm.h"
#include "heddle/ops/reduce.h"

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

TEST(Tape, the_first_output_that_is_not_finite_names_op_and_layer) {
  Variable v({1000});
  set_check_finite(true);
  const std::string name = "encoder.layers.3";
  std::string message;
  try {
    const LayerName layer(name);
    exp(v.x);
  } catch (const Error& e) {
    message = e.what();
  }
  set_check_finite(false);
  clear_tape();
  EXPECT_NE(message.find("'exp' in layer 'encoder.layers.3'"), std::string::npos) << message;
}

}  // namespace
}  // namespace heddle
