// What multiplies matrices on this CPU.
#pragma once

#include <cstdint>
#include <string_view>

namespace heddle {

/// The best unit for matrix products, worst first. Bits of results are promised for one unit.
enum class MatrixUnit : uint8_t {
  vectors,      ///< f32 vectors; bf16 factors are widened
  avx512_vnni,  ///< the same, but dot products of four int8 by AVX-512
  avx512_fma,   ///< these; bf16 is rounded by AVX-512 BF16, but widened and multiplied by FMA
  avx512_bf16,  ///< dot products of bf16 pairs, too
  amx,          ///< 16x16 tiles of bf16
};

/// What this CPU and this system give, or less if the environment variable HEDDLE_MATRIX_UNIT
/// (avx2, vectors, avx512_vnni, avx512_fma, avx512_bf16 or amx) says so, to get the bits of another
/// machine. avx2: vectors, and of no more than 256 bits, in all kernels. Not the best, but the
/// fastest: where dot products of bf16 pairs are slower than FMA, they are taken only if asked for.
MatrixUnit matrix_unit();
/// Whether it multiplies bf16.
inline bool has_bf16_products() { return matrix_unit() >= MatrixUnit::avx512_fma; }
/// "vectors", "avx512_vnni", "avx512_fma", "avx512_bf16" or "amx".
std::string_view matrix_unit_name(MatrixUnit unit);
/// The instructions of the vectors of all kernels: "avx512", "avx2", "sse4" or "generic".
std::string_view vector_set();

}  // namespace heddle
