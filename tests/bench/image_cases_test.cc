// What the roof of models of images counts: convolutions as this machine multiplies them.
#include <gtest/gtest.h>

#include "heddle/bench/case.h"
#include "heddle/kernels/kernels.h"

namespace heddle::bench {
namespace {

double flops(DType compute) {
  Precision precision;
  precision.compute = compute;
  return find_case("train-resnet").make({.precision = precision, .batch = 2}).products.flops();
}

// Of 36 multiplications of a tile 16; all images have even sides, the convolution of pixels and the
// classes are plain.
TEST(ImageCases, convolutions_by_fewer_multiplications_count_so) {
  const double plain = flops(DType::f32), others = 6.0 * 2 * (32 * 32 * 27 * 64 + 256 * 10);
  EXPECT_GT(plain, 10 * others);
  const double of_gradients = winograd_is_faster(64, 64, true) ? 16.0 / 36 : 1;
  const double of_product = takes_windows(DType::bf16) ? 1 : of_gradients;
  const double share = (of_product + 2 * of_gradients) / 3;
  EXPECT_NEAR(flops(DType::bf16), others + share * (plain - others), 1e-9 * plain);
}

}  // namespace
}  // namespace heddle::bench
