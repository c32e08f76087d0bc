// Losses of mixtures of experts beyond what the cases of ops say.
#include "heddle/ops/moe.h"

#include <gtest/gtest.h>

namespace heddle {
namespace {

TEST(BalanceLoss, of_no_rows_is_zero) {
  Leaf leaf{.name = "logits", .grad = {}};
  const Tensor loss = balance_loss({Tensor::zeros({0, 4}, DType::f32).with_leaf(&leaf)}, 2);
  EXPECT_EQ(loss.item(), 0);
  backward(loss);
}

}  // namespace
}  // namespace heddle
