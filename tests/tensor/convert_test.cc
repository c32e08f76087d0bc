// Halves there and back: every bit pattern, ties to even, and what is beyond.
#include "heddle/tensor/convert.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/base/temporary.h"

namespace heddle {
namespace {

TEST(Convert, every_half_comes_back_from_float) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = half_to_float(static_cast<uint16_t>(bits));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(half_to_float(float_to_half(value)))) << bits;
    } else {
      EXPECT_EQ(float_to_half(value), bits);
    }
  }
}

TEST(Convert, float_goes_to_the_nearest_half_and_ties_to_even) {
  for (uint32_t bits = 0; bits < 0x7bff; ++bits) {
    const float low = half_to_float(static_cast<uint16_t>(bits)),
                high = half_to_float(static_cast<uint16_t>(bits + 1));
    const float middle = low + (high - low) / 2;  // exact: halves have 11 bits
    EXPECT_EQ(float_to_half(middle), bits % 2 == 0 ? bits : bits + 1);
    EXPECT_EQ(float_to_half(std::nextafter(middle, 0.0f)), bits);
    EXPECT_EQ(float_to_half(std::nextafter(middle, 1e9f)), bits + 1);
    EXPECT_EQ(float_to_half(-middle), 0x8000u | (bits % 2 == 0 ? bits : bits + 1));
  }
  EXPECT_EQ(float_to_half(65519.0f), 0x7bff);
  EXPECT_EQ(float_to_half(65520.0f), 0x7c00);
  EXPECT_EQ(float_to_half(std::numeric_limits<float>::infinity()), 0x7c00);
}

TEST(Convert, value_beyond_f16_is_a_data_error_that_names_the_tensor) {
  const std::vector<float> values = {1, 70000};
  expect_error(ErrorKind::data, {"h.0.weight", "70000", "65504", "bf16"},
               [&] { convert_from_floats(values, DType::f16, "h.0.weight"); });
  EXPECT_EQ(convert_from_floats(values, DType::bf16, "").size(), 4u);
}

}  // namespace
}  // namespace heddle
