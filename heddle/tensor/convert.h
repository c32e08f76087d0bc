// From any element type that heddle reads to float.
#pragma once

#include <span>

#include "heddle/tensor/dtype.h"

namespace heddle {

/// The value of an IEEE half.
float half_to_float(uint16_t bits);

/// Reads values.size() elements of `dtype` at `data`, rounding f64 and integers to float.
void convert_to_floats(const void* data, DType dtype, std::span<float> values);

}  // namespace heddle
