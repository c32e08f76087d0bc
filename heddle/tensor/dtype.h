// Element types, the bf16 value type, and which formats to compute in.
#pragma once

#include <bit>
#include <cstdint>
#include <utility>

#include "heddle/base/error.h"

namespace heddle {

/// Element types: those heddle computes in (f32, bf16, integers) and those it only reads (f16,
/// f64).
enum class DType : uint8_t { f32, bf16, f16, f64, i64, i32, i16, i8, u8, boolean };

/// Bytes of one element.
constexpr int64_t size_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
    case DType::i64: return 8;
    case DType::f32:
    case DType::i32: return 4;
    case DType::bf16:
    case DType::f16:
    case DType::i16: return 2;
    default: return 1;
  }
}

/// "f32", "bf16", ...
inline const char* dtype_name(DType dtype) {
  constexpr const char* kNames[] = {"f32", "bf16", "f16", "f64", "i64",
                                    "i32", "i16",  "i8",  "u8",  "bool"};
  return kNames[static_cast<int>(dtype)];
}

/// The upper half of an f32: 8 bits of exponent, 7 of fraction.
struct bf16 {
  uint16_t bits = 0;

  bf16() = default;
  /// Rounds to nearest, ties to even; NaN stays NaN.
  explicit bf16(float value) {
    const uint32_t u = std::bit_cast<uint32_t>(value);
    const bool is_nan = (u & 0x7fffffffu) > 0x7f800000u;
    bits =
        static_cast<uint16_t>(is_nan ? (u >> 16) | 0x40u : (u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
  }
  explicit operator float() const {
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }
};

/// The dtype of a C++ type: dtype_of<float> == DType::f32.
template <class T>
inline constexpr DType dtype_of = T::is_no_dtype;
template <>
inline constexpr DType dtype_of<float> = DType::f32;
template <>
inline constexpr DType dtype_of<bf16> = DType::bf16;
template <>
inline constexpr DType dtype_of<double> = DType::f64;
template <>
inline constexpr DType dtype_of<int64_t> = DType::i64;
template <>
inline constexpr DType dtype_of<int32_t> = DType::i32;
template <>
inline constexpr DType dtype_of<uint8_t> = DType::u8;
template <>
inline constexpr DType dtype_of<int8_t> = DType::i8;

/// Calls f.template operator()<T>() with T = float or bf16.
/// Errors: device if the dtype is not one that heddle computes in.
template <class F>
decltype(auto) visit_float(DType dtype, F&& f) {
  if (dtype == DType::bf16) return std::forward<F>(f).template operator()<bf16>();
  check(dtype == DType::f32, ErrorKind::device,
        "cannot compute in {}; convert the tensor to f32 or bf16 first", dtype_name(dtype));
  return std::forward<F>(f).template operator()<float>();
}

/// The number formats of a forward pass.
struct Precision {
  DType compute = DType::f32;  ///< of activations; of products too, unless they are in int8
  bool int8 = false;           ///< products with weights, where no gradient is wanted

  Precision(DType c = DType::f32, bool i = false) : compute(c), int8(i) {}  // NOLINT: of a dtype
  /// Bytes of a weight in a product.
  int64_t weight_bytes() const { return int8 ? 1 : size_of(compute); }
  friend bool operator==(const Precision&, const Precision&) = default;
};

}  // namespace heddle
