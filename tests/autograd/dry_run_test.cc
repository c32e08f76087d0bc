// Dry runs: work is counted and none is done; the tape's bytes are known.
#include "heddle/autograd/dry_run.h"

#include <gtest/gtest.h>

#include "heddle/autograd/tape.h"
#include "heddle/ops/matmul.h"

namespace heddle {
namespace {

TEST(DryRun, product_of_a_terabyte_is_counted_in_no_memory) {
  constexpr int64_t n = int64_t{1} << 19;
  Leaf leaf{.name = "w", .grad = {}};
  std::vector<std::string> names;
  double flops = 0;
  const DryRun dry([&](const DryOp& op) {
    names.emplace_back(op.name);
    flops += op.work.flops;
  });
  const Tensor w = Tensor::empty({n, n}, DType::f32).with_leaf(&leaf);
  const Tensor x = Tensor::zeros({3, n}, DType::f32);
  EXPECT_EQ(dry.bytes(), 4 * n * n + 4 * 3 * n);
  {
    const Tensor y = linear(x, w, {});
    EXPECT_EQ(y.data<float>()[5], 0);
    EXPECT_EQ(dry.bytes(), 4 * n * n + 2 * 4 * 3 * n);
  }
  EXPECT_EQ(dry.bytes(), 4 * n * n + 4 * 3 * n);  // the tape needs x and w, not y
  EXPECT_EQ(names, std::vector<std::string>{"linear"});
  EXPECT_EQ(flops, 2.0 * 3 * n * n);
}

TEST(DryRun, kernels_compute_again_when_it_has_ended) {
  const Tensor a = Tensor::full({1, 2}, 2), b = Tensor::full({2, 1}, 3);
  {
    const DryRun dry([](const DryOp&) {});
    EXPECT_EQ(matmul(a, b).data<float>()[0], 0);
  }
  EXPECT_EQ(matmul(a, b).data<float>()[0], 12);
}

}  // namespace
}  // namespace heddle
