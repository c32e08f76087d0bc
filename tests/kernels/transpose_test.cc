// Matrices with swapped axes against their definition in plain loops, on every instruction set.
#include "tests/kernels/kernel_case.h"

namespace heddle::kernel_test {
namespace {

// Sides around the squares of 4 and 8 elements, and around a line of the cache.
TEST(Transpose, every_shape_and_dtype_is_what_the_definition_says) {
  for_each_target([] {
    for (const DType dtype : computed_dtypes()) {
      for (const int64_t height : {1, 2, 3, 4, 7, 8, 9, 16, 21, 64}) {
        for (const int64_t width : {1, 3, 4, 5, 8, 11, 15, 16, 17, 31, 32, 33, 65}) {
          Matrix x(3 * height, width, dtype, 2);
          x.fill_normal(1);
          Matrix y(3 * width, height, dtype, 5), want = y;
          kernels().transpose({.x = x, .y = y, .height = height});
          definition::transpose({.x = x, .y = want, .height = height});
          ASSERT_TRUE(y == want) << height << " x " << width << " " << dtype_name(dtype);
        }
      }
    }
  });
}

}  // namespace
}  // namespace heddle::kernel_test
