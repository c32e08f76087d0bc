// Reading each element type into float, and writing those that are written.
#include "heddle/tensor/convert.h"

#include <cmath>
#include <cstring>

#include "heddle/base/error.h"

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

uint16_t float_to_half(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | 0x7e00u;   // NaN
  if (magnitude >= 0x477ff000u) return sign | 0x7c00u;  // 65520 and more round to infinity
  if (magnitude < 0x38800000u) {                        // below 2^-14: steps of 2^-24
    const float steps = std::nearbyint(std::bit_cast<float>(magnitude) * 0x1p24f);
    return static_cast<uint16_t>(sign | static_cast<uint16_t>(steps));
  }
  const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((rounded >> 13) - (112u << 10)));
}

void check_saved(DType dtype) {
  check(dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16, ErrorKind::usage,
        "weights are saved in f32, bf16 or f16, not in {}", dtype_name(dtype));
}

std::vector<std::byte> convert_from_floats(std::span<const float> values, DType dtype,
                                           const std::string& name) {
  std::vector<std::byte> bytes(values.size() * static_cast<size_t>(size_of(dtype)));
  const auto put = [&](size_t i, const auto& x) {
    std::memcpy(bytes.data() + i * sizeof x, &x, sizeof x);
  };
  switch (dtype) {
    case DType::f32: std::memcpy(bytes.data(), values.data(), bytes.size()); break;
    case DType::bf16:
      for (size_t i = 0; i < values.size(); ++i) put(i, bf16(values[i]));
      break;
    case DType::f16:
      for (size_t i = 0; i < values.size(); ++i) {
        check(!(std::abs(values[i]) >= 65520) || std::isinf(values[i]), ErrorKind::data,
              "{}: the value {} is beyond f16, whose largest is 65504; take bf16 or f32", name,
              values[i]);
        put(i, float_to_half(values[i]));
      }
      break;
    case DType::i64:
      for (size_t i = 0; i < values.size(); ++i)
        put(i, static_cast<int64_t>(std::llround(values[i])));
      break;
    default: fail(ErrorKind::internal, "{}: no way from f32 to {}", name, dtype_name(dtype));
  }
  return bytes;
}

void convert_to_floats(const void* data, DType dtype, std::span<float> values) {
  switch (dtype) {
    case DType::f32:
      if (!values.empty()) std::memcpy(values.data(), data, values.size_bytes());
      break;
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
