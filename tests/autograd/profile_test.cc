// Ops under their names and layers in a profile, in the forward and the backward pass.
#include "heddle/base/profile.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "heddle/autograd/tape.h"
#include "heddle/ops/elementwise.h"
#include "heddle/ops/matmul.h"
#include "heddle/ops/reduce.h"

namespace heddle {
namespace {

struct Variable {
  Leaf leaf;
  Tensor x;
  explicit Variable(const Shape& shape) : x(Tensor::full(shape, 0.5f).with_leaf(&leaf)) {}
};

// tanh(x w1ᵀ) w2ᵀ, each product in a layer of its own, forward and backward.
Tensor gradient_of_two_layers() {
  Variable x({3, 4}), w1({5, 4}), w2({2, 5});
  Tensor h, y;
  {
    const std::string name = "fc1";  // gone before the backward pass
    const LayerName layer(name);
    h = activation(Activation::tanh, linear(x.x, w1.x, {}));
  }
  {
    const std::string name = "fc2";
    const LayerName layer(name);
    y = add(linear(h, w2.x, {}), linear(h, w2.x, {}));
  }
  backward(sum(y));
  return x.leaf.grad;
}

TEST(ProfiledTape, every_kernel_goes_under_op_layer_and_pass) {
  start_profile();
  gradient_of_two_layers();
  const auto p = stop_profile();
  std::set<std::string> seen;
  for (const Profile::Row& r : p->rows) {
    seen.insert(fmt::format("{} {} {}{} {}", r.op, r.kernel, r.layer,
                            r.pass == ProfilePass::backward ? " backward" : "", r.totals.calls));
  }
  for (const char* row :
       {"linear gemm fc1 1", "activation activation fc1 1", "linear gemm fc2 2", "add add fc2 1",
        "linear gemm fc2 backward 4", "sum of gradients add fc2 backward 2",
        "activation activation_backward fc1 backward 1", "linear gemm fc1 backward 2"}) {
    EXPECT_TRUE(seen.contains(row)) << row << " is not among\n"
                                    << fmt::format("{}", fmt::join(seen, "\n"));
  }
}

TEST(ProfiledTape, gradients_have_the_same_bits_with_and_without) {
  const auto plain = gradient_of_two_layers().to_floats();
  start_profile();
  const auto profiled = gradient_of_two_layers().to_floats();
  stop_profile();
  EXPECT_EQ(profiled, plain);
}

TEST(ProfiledTape, ops_without_a_gradient_are_named_too) {
  start_profile();
  {
    const NoGrad off;
    scale(Tensor::full({2, 2}, 1), 2);
  }
  const auto p = stop_profile();
  ASSERT_EQ(p->rows.size(), 1u);
  EXPECT_EQ(p->rows[0].pass, ProfilePass::forward);
}

}  // namespace
}  // namespace heddle
