// What multiplies matrices on this CPU.
#pragma once

#include <cstdint>
#include <string_view>

namespace heddle {

/// The best unit for matrix products, worst first. Bits of results are promised for one unit.
enum class MatrixUnit : uint8_t {
  vectors,      ///< f32 vectors; bf16 factors are kept widened
  avx512_vnni,  ///< dot products of four int8 by AVX-512; bf16 by FMA, widened on the way
  avx512_fma,   ///< the same with AVX-512 BF16 to round: attention by tiles, Winograd's products
  avx512_bf16,  ///< dot products of bf16 pairs, too
  amx,          ///< 16x16 tiles of bf16
};

/// What this CPU and this system give, or less if the environment variable HEDDLE_MATRIX_UNIT
/// (avx2, vectors, avx512_vnni, avx512_fma, avx512_bf16 or amx) says so, to get the bits of another
/// machine. avx2: vectors, and of no more than 256 bits, in all kernels. Not the best, but the
/// fastest: where dot products of bf16 pairs are slower than FMA, they are taken only if asked for.
MatrixUnit matrix_unit();
/// Whether it has instructions for bf16: AVX-512 BF16, and perhaps AMX.
inline bool has_bf16_instructions() { return matrix_unit() >= MatrixUnit::avx512_fma; }
/// "vectors", "avx512_vnni", "avx512_fma", "avx512_bf16" or "amx".
std::string_view matrix_unit_name(MatrixUnit unit);
/// Whether this CPU is AMD's, whose cores fetch ahead and load in other ways than Intel's. With
/// AVX-512, products in f32 are summed in other chunks there: other bits.
bool is_of_amd();
/// The instructions of the vectors of all kernels: "avx512", "avx2", "sse4" or "generic".
std::string_view vector_set();

}  // namespace heddle
