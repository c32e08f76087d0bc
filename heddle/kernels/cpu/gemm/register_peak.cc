// Loops of one instruction over sums that all stay in registers, a loop for each unit.
#include "heddle/kernels/cpu/gemm/register_peak.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <vector>

#include "heddle/base/parallel.h"
#include "heddle/kernels/cpu/matrix_unit.h"

#if defined(__x86_64__)
#include <cstring>

#include "heddle/kernels/cpu/gemm/amx_shape.h"
#endif

namespace heddle::cpu {

#if defined(__x86_64__)
namespace {

constexpr int64_t kRounds = 200'000;

// Keeps x in a register, and its value from being known: no product can be made beforehand.
#define HEDDLE_KEEP(x) __asm__ volatile("" : "+v"(x))

// A function `name` in which `sums` sums of a type get `next`, an expression of sum, x and y, in
// each round. products: in one such sum. A macro, since a function is inlined where the
// instructions that it may use are the same.
#define HEDDLE_REGISTER_LOOP(name, sums, Sum, zero, first, second, products, next) \
  double name() {                                                                  \
    auto x = first;                                                                \
    const auto y = second;                                                         \
    Sum all[sums];                                                                 \
    _Pragma("GCC unroll 32") for (Sum & sum : all) sum = zero;                     \
    for (int64_t i = 0; i < kRounds; ++i) {                                        \
      _Pragma("GCC unroll 32") for (Sum & sum : all) {                             \
        HEDDLE_KEEP(x);                                                            \
        sum = next;                                                                \
      }                                                                            \
    }                                                                              \
    _Pragma("GCC unroll 32") for (Sum & sum : all) HEDDLE_KEEP(sum);               \
    return 2.0 * (products) * (sums)*kRounds;                                      \
  }

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512bf16,avx512vnni")

// By intrinsics GCC 12 stores each sum of integers after each product.
inline __m512i add_int8(__m512i sum, __m512i x, __m512i y) {
  __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(x), "v"(y));
  return sum;
}
#define HEDDLE_ADD_INT16 "vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0"
inline __m512i add_int16(__m512i sum, __m512i x, __m512i y) {
  __m512i pair;
  __asm__(HEDDLE_ADD_INT16 : "+v"(sum), "=&v"(pair) : "v"(x), "v"(y));
  return sum;
}

// 24 sums: what a block of 12 rows and two vectors of columns holds. Without VNNI, int8 goes by
// 16-bit products, of which one instruction adds two and another adds them to the sum.
HEDDLE_REGISTER_LOOP(f32_512, 24, __m512, _mm512_setzero_ps(), _mm512_set1_ps(0.5f),
                     _mm512_set1_ps(0.25f), 16, _mm512_fmadd_ps(x, y, sum))
HEDDLE_REGISTER_LOOP(bf16_512, 24, __m512, _mm512_setzero_ps(), _mm512_set1_epi16(0x3f00),
                     _mm512_set1_epi16(0x3e80), 32,
                     _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(x),
                                      reinterpret_cast<__m512bh>(y)))
HEDDLE_REGISTER_LOOP(int8_512, 24, __m512i, _mm512_setzero_si512(), _mm512_set1_epi8(3),
                     _mm512_set1_epi8(2), 64, add_int8(sum, x, y))
HEDDLE_REGISTER_LOOP(int16_512, 24, __m512i, _mm512_setzero_si512(), _mm512_set1_epi16(3),
                     _mm512_set1_epi16(2), 32, add_int16(sum, x, y))

#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx2,fma")

inline __m256i add_int16_256(__m256i sum, __m256i x, __m256i y) {
  __m256i pair;
  __asm__(HEDDLE_ADD_INT16 : "+x"(sum), "=&x"(pair) : "x"(x), "x"(y));
  return sum;
}

// 12 sums of 16 registers.
HEDDLE_REGISTER_LOOP(f32_256, 12, __m256, _mm256_setzero_ps(), _mm256_set1_ps(0.5f),
                     _mm256_set1_ps(0.25f), 8, _mm256_fmadd_ps(x, y, sum))
HEDDLE_REGISTER_LOOP(int16_256, 12, __m256i, _mm256_setzero_si256(), _mm256_set1_epi16(3),
                     _mm256_set1_epi16(2), 16, add_int16_256(sum, x, y))

#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("amx-tile,amx-bf16,amx-int8")

// Four tiles of sums by two of rows and two of columns, as the driver holds them.
template <bool kInt8>
double tiles() {
  alignas(64) uint8_t numbers[1024];
  std::memset(numbers, 0x3f, sizeof numbers);  // as bf16 0.75: products of zeros may be faster
  constexpr int64_t kTileRounds = kRounds / 4;
  shape_tiles(16, 16);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  memory_is_read();
  _tile_loadd(4, numbers, 64);
  _tile_loadd(5, numbers, 64);
  _tile_loadd(6, numbers, 64);
  _tile_loadd(7, numbers, 64);
  for (int64_t i = 0; i < kTileRounds; ++i) {
    if constexpr (kInt8) {
      _tile_dpbssd(0, 4, 6);
      _tile_dpbssd(1, 4, 7);
      _tile_dpbssd(2, 5, 6);
      _tile_dpbssd(3, 5, 7);
    } else {
      _tile_dpbf16ps(0, 4, 6);
      _tile_dpbf16ps(1, 4, 7);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
  }
  _tile_release();
  return 2.0 * 16 * 16 * (kInt8 ? 64 : 32) * 4 * kTileRounds;
}

#pragma GCC pop_options

double by_vectors(bool is_int8) {
  if (vector_set() == "avx512") return is_int8 ? int16_512() : f32_512();
  if (vector_set() != "avx2") return 0;
  return is_int8 ? int16_256() : f32_256();
}

}  // namespace

double multiply_registers(DType factors) {
  const MatrixUnit unit = matrix_unit();
  const bool is_int8 = factors == DType::i8;
  const MatrixUnit least = is_int8 ? MatrixUnit::avx512_vnni : MatrixUnit::avx512_bf16;
  if (factors == DType::f32 || unit < least) return by_vectors(is_int8);
  if (unit == MatrixUnit::amx) return is_int8 ? tiles<true>() : tiles<false>();
  return is_int8 ? int8_512() : bf16_512();
}

#else

double multiply_registers(DType) { return 0; }

#endif

double register_peak(DType factors, double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  };
  std::vector<double> done(static_cast<size_t>(num_threads()));
  double fastest = 0;
  for (const Clock::time_point begin = Clock::now(); since(begin) < seconds;) {
    const Clock::time_point start = Clock::now();
    parallel_for(std::ssize(done), [&](int64_t i) { done[i] = multiply_registers(factors); });
    const double operations = std::accumulate(done.begin(), done.end(), 0.0);
    fastest = std::max(fastest, operations / since(start));
  }
  return fastest;
}

}  // namespace heddle::cpu
