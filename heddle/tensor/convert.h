// From any element type that heddle reads to float, and back to those that it writes.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "heddle/tensor/dtype.h"

namespace heddle {

/// The value of an IEEE half.
float half_to_float(uint16_t bits);

/// Reads values.size() elements of `dtype` at `data`, rounding f64 and integers to float.
void convert_to_floats(const void* data, DType dtype, std::span<float> values);

/// The IEEE half nearest to a value, ties to even; infinity beyond the largest, 65504.
uint16_t float_to_half(float value);

/// Errors: usage unless weights are saved in it: f32, bf16 or f16.
void check_saved(DType dtype);

/// The bytes of values in f32, bf16 or f16. Errors: data, naming `name`, where a finite value is
/// beyond f16.
std::vector<std::byte> convert_from_floats(std::span<const float> values, DType dtype,
                                           const std::string& name);

}  // namespace heddle
