// Reading each element type into float.
#include "heddle/tensor/convert.h"

#include <cstring>

namespace heddle {
namespace {

template <class T>
void convert(const void* data, std::span<float> values) {
  const auto* bytes = static_cast<const char*>(data);
  for (size_t i = 0; i < values.size(); ++i) {
    T value;
    std::memcpy(&value, bytes + i * sizeof(T), sizeof(T));
    values[i] = static_cast<float>(value);
  }
}

}  // namespace

float half_to_float(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
  const uint32_t exponent = (h >> 10) & 31u;
  const uint32_t fraction = h & 1023u;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (fraction << 13));
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
}

void convert_to_floats(const void* data, DType dtype, std::span<float> values) {
  switch (dtype) {
    case DType::f32: std::memcpy(values.data(), data, values.size_bytes()); break;
    case DType::bf16: convert<bf16>(data, values); break;
    case DType::f16:
      for (size_t i = 0; i < values.size(); ++i) {
        uint16_t bits;
        std::memcpy(&bits, static_cast<const char*>(data) + 2 * i, 2);
        values[i] = half_to_float(bits);
      }
      break;
    case DType::f64: convert<double>(data, values); break;
    case DType::i64: convert<int64_t>(data, values); break;
    case DType::i32: convert<int32_t>(data, values); break;
    case DType::i16: convert<int16_t>(data, values); break;
    case DType::i8: convert<int8_t>(data, values); break;
    case DType::u8:
    case DType::boolean: convert<uint8_t>(data, values); break;
  }
}

}  // namespace heddle
