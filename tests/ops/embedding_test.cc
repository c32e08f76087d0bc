// Rows that are looked up: what their gradients are like beyond the cases that all ops share.
#include "heddle/ops/embedding.h"

#include <gtest/gtest.h>

#include "heddle/autograd/tape.h"
#include "heddle/ops/elementwise.h"
#include "heddle/ops/reduce.h"
#include "heddle/ops/shape.h"

namespace heddle {
namespace {

// A running sum of ones in bf16 would stay at 256.
TEST(GatherRows, gradient_is_summed_in_f32_and_has_the_dtype_of_the_rows) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Leaf leaf;
    const Tensor x = Tensor::full({2, 3}, 1).with_leaf(&leaf);
    Tensor seen;
    const Tensor rows = cast(x, dtype);
    const Tensor watched = record("watch", {rows}, rows.clone(), [&](const Tensor& dy) -> Grads {
      seen = dy;
      return {dy};
    });
    const Tensor y = gather_rows(watched, std::vector<int32_t>(300, 1));
    backward(sum(cast(y, DType::f32)));
    EXPECT_EQ(seen.dtype(), dtype);
    EXPECT_EQ(leaf.grad.to_floats(), (std::vector<float>{0, 0, 0, 300, 300, 300}));
  }
}

}  // namespace
}  // namespace heddle
