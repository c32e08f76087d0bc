// What the two codes for packed int8 share: exact sums of a panel on their way to c.
#pragma once

#if defined(__x86_64__)
#include "heddle/kernels/cpu/gemm/gemm_bf16_store.h"
#include "heddle/kernels/cpu/gemm/quantize.h"

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512bf16")

namespace heddle::cpu {
namespace {

/// What follows the elements of a panel.
inline const Int8Columns& columns_of(const GemmBlock& g, const char* panel) {
  return *reinterpret_cast<const Int8Columns*>(panel + g.inner * kInt8Columns);
}

/// Where 32 columns of sums of products in int8 go.
struct Int8PanelOut : PanelOut {
  __m512 scale_low, scale_high;

  Int8PanelOut(const GemmBlock& block, int64_t first, const char* panel) : PanelOut(block, first) {
    scale_low = _mm512_loadu_ps(columns_of(block, panel).scale);
    scale_high = _mm512_loadu_ps(columns_of(block, panel).scale + 16);
  }
  // By name, since the compiler may or may not join a product and a sum: the bits would depend on
  // it.
  void store(int64_t row, __m512i a, __m512i b) const {
    const __m512 unit = _mm512_set1_ps(g->scale[row]);
    write(row, _mm512_fmadd_ps(_mm512_cvtepi32_ps(a), _mm512_mul_ps(unit, scale_low), bias_low),
          _mm512_fmadd_ps(_mm512_cvtepi32_ps(b), _mm512_mul_ps(unit, scale_high), bias_high));
  }
};

}  // namespace
}  // namespace heddle::cpu

#pragma GCC pop_options
#endif
