// What multiplies matrices on this CPU.
#pragma once

#include <cstdint>
#include <string_view>

namespace heddle {

/// The best unit for matrix products, worst first. Bits of results are promised for one unit.
enum class MatrixUnit : uint8_t {
  vectors,      ///< f32 vectors; bf16 factors are widened
  avx512_bf16,  ///< AVX-512 with dot products of bf16 pairs
  amx,          ///< 16x16 tiles of bf16
};

/// What this CPU and this system give, or less if the environment variable HEDDLE_MATRIX_UNIT
/// (vectors, avx512_bf16 or amx) says so, to get the bits of another machine.
MatrixUnit matrix_unit();
/// "vectors", "avx512_bf16" or "amx".
std::string_view matrix_unit_name(MatrixUnit unit);

}  // namespace heddle
