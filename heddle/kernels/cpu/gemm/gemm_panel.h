// What the codes for panels of 32 columns share, in bf16 and in int8: their sizes, and moving sums
// of a panel to and from c.
#pragma once

#if defined(__x86_64__)
// False in GCC 12's intrinsics (its bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>

#include <utility>

#include "heddle/kernels/cpu/gelu_pieces.h"
#include "heddle/kernels/cpu/gemm/gemm_block.h"
#include "heddle/kernels/cpu/gemm/quantize.h"
#include "heddle/kernels/cpu/matrix_unit.h"

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512bf16")

namespace heddle::cpu {
namespace {

/// Which bf16 are below zero: neither -0 nor NaN.
inline __mmask32 below_zero(__m512i x) {
  const __m512i behind_minus_zero = _mm512_sub_epi16(x, _mm512_set1_epi16(-0x7fff));
  return _mm512_cmple_epu16_mask(behind_minus_zero, _mm512_set1_epi16(0x7f7f));
}

/// 16 numbers as bf16 as the CPU's instruction rounds them, where it has none: to nearest, ties to
/// even; denormal numbers become zeros, NaN quiet.
inline __m256i rounded_by_integers(__m512 x) {
  const __m512i bits = _mm512_castps_si512(x);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  __m512i top = _mm512_srli_epi32(
      _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff))), 16);
  const __m512i sign = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(0x8000));
  const __mmask16 is_small =
      _mm512_testn_epi32_mask(bits, _mm512_set1_epi32(0x7f800000));  // no exponent
  top = _mm512_mask_mov_epi32(top, is_small, sign);
  const __mmask16 is_nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
  top = _mm512_mask_or_epi32(top, is_nan, _mm512_srli_epi32(bits, 16), _mm512_set1_epi32(0x40));
  return _mm512_cvtepi32_epi16(top);
}
/// 32 sums as bf16. by_cpu: whether it has an instruction for that
inline __m512i rounded(__m512 low, __m512 high, bool by_cpu) {
  if (by_cpu) return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low));
  return _mm512_inserti64x4(_mm512_castsi256_si512(rounded_by_integers(low)),
                            rounded_by_integers(high), 1);
}
/// The lower (0) or upper half of 32 bf16 as f32.
template <int kHalf>
__m512 widened(__m512i x) {
  const __m512i bits = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(x, kHalf));
  return _mm512_castsi512_ps(_mm512_slli_epi32(bits, 16));
}

/// GELU of 32 bf16.
inline __m512i activated(const GeluTable& gelu, __m512i x, bool by_cpu) {
  return rounded(gelu.value(widened<0>(x)), gelu.value(widened<1>(x)), by_cpu);
}

/// 32 sums of a row.
struct RowOfSums {
  __m512 low, high;
};

/// Where 32 columns of sums go: columns [column, column + 32) of the block's c, or what is left.
struct PanelOut {
  const GemmBlock* g;
  int64_t column;
  __mmask16 low, high;  ///< the columns that c has
  bool is_whole;        ///< whether it has all
  bool has_bf16 = has_bf16_instructions();
  __m512 bias_low, bias_high;

  PanelOut(const GemmBlock& block, int64_t first) : g(&block), column(first) {
    const int64_t left = block.c.width - first;
    const auto mask = [](int64_t n) {
      return static_cast<__mmask16>(n >= 16 ? 0xffff : n <= 0 ? 0 : (1 << n) - 1);
    };
    low = mask(left), high = mask(left - 16), is_whole = left >= 32;
    bias_low = bias_high = _mm512_setzero_ps();
    if (block.bias != nullptr) {
      bias_low = _mm512_maskz_loadu_ps(low, block.bias + first);
      bias_high = _mm512_maskz_loadu_ps(high, block.bias + first + 16);
    }
  }
  /// Whether sums go to c as they are, with their bias alone.
  bool is_plain() const {
    return is_whole && g->c.dtype == DType::f32 && g->added.data == nullptr && !g->relu;
  }
  /// Sums that c holds already.
  void load(int64_t row, __m512* a, __m512* b) const {
    const float* c = g->c.row<float>(row) + column;
    *a = _mm512_maskz_loadu_ps(low, c);
    *b = _mm512_maskz_loadu_ps(high, c + 16);
  }
  void store(int64_t row, __m512 a, __m512 b) const {
    write(row, _mm512_add_ps(a, bias_low), _mm512_add_ps(b, bias_high));
  }
  /// The same for sums that have their bias.
  void write(int64_t row, __m512 a, __m512 b) const {
    if (g->c.dtype == DType::f32) {
      float* c = g->c.row<float>(row) + column;
      if (g->added.data != nullptr) {
        const float* more = g->added.row<float>(row) + column;
        a = _mm512_add_ps(a, _mm512_maskz_loadu_ps(low, more));
        b = _mm512_add_ps(b, _mm512_maskz_loadu_ps(high, more + 16));
      }
      if (g->relu) {
        const __m512 zero = _mm512_setzero_ps();
        a = _mm512_max_ps(zero, a), b = _mm512_max_ps(zero, b);  // NaN stays
      }
      _mm512_mask_storeu_ps(c, low, a);
      _mm512_mask_storeu_ps(c + 16, high, b);
    } else {
      const auto columns = static_cast<__mmask32>(low | static_cast<uint32_t>(high) << 16);
      __m512i both = rounded(a, b, has_bf16);
      if (g->added.data != nullptr) {
        const uint16_t* const at = g->added.row<uint16_t>(row) + column;
        // Loads by a mask wait for each other on Zen 5 where they miss the caches.
        const __m512i more =
            is_whole ? _mm512_loadu_si512(at) : _mm512_maskz_loadu_epi16(columns, at);
        both = rounded(_mm512_add_ps(widened<0>(both), widened<0>(more)),
                       _mm512_add_ps(widened<1>(both), widened<1>(more)), has_bf16);
      }
      if (g->relu) both = _mm512_mask_mov_epi16(both, below_zero(both), _mm512_setzero_si512());
      if (g->gelu != nullptr) {
        if (g->kept.data != nullptr) {
          _mm512_mask_storeu_epi16(g->kept.row<uint16_t>(row) + column, columns, both);
        }
        both = activated(GeluTable(*g->gelu), both, has_bf16);
      }
      uint16_t* const c = g->c.row<uint16_t>(row) + column;
      if (g->past_caches && is_whole) {
        _mm512_stream_si512(reinterpret_cast<__m512i*>(c), both);
      } else if (is_whole) {
        _mm512_storeu_si512(c, both);
      } else {
        _mm512_mask_storeu_epi16(c, columns, both);
      }
    }
  }
};

/// What becomes of sums behind all else.
enum class Last { nothing, relu, gelu, kept_and_gelu };

/// write_rows of whole panels in bf16. Few instructions a row: what follows, the next rows'
/// products, is to begin before the last row is stored.
template <bool kAdded, Last kLast, bool kPastCaches, class F>
void write_whole_rows(const PanelOut& out, int64_t row, int64_t rows, const F& sums) {
  const GemmBlock& g = *out.g;
  const auto rows_of = [&](const Rows& x) { return x.row<uint16_t>(row) + out.column; };
  const auto store = [](uint16_t* to, const __m512i& x) {
    if constexpr (kPastCaches) {
      _mm512_stream_si512(reinterpret_cast<__m512i*>(to), x);
    } else {
      _mm512_storeu_si512(to, x);
    }
  };
  uint16_t* c = rows_of(g.c);
  const uint16_t* added = kAdded ? rows_of(g.added) : nullptr;
  uint16_t* kept = kLast == Last::kept_and_gelu ? rows_of(g.kept) : nullptr;
  const int64_t c_stride = g.c.stride, added_stride = g.added.stride, kept_stride = g.kept.stride;
  const GeluTable gelu = kLast >= Last::gelu ? GeluTable(*g.gelu) : GeluTable();
#pragma GCC unroll 2
  for (int64_t i = 0; i < rows; ++i) {
    const RowOfSums s = sums(i);
    __m512i both = rounded(s.low, s.high, true);
    if constexpr (kAdded) {
      const __m512i more = _mm512_loadu_si512(added);
      both = rounded(_mm512_add_ps(widened<0>(both), widened<0>(more)),
                     _mm512_add_ps(widened<1>(both), widened<1>(more)), true);
      added += added_stride;
    }
    if constexpr (kLast == Last::relu) {
      both = _mm512_mask_mov_epi16(both, below_zero(both), _mm512_setzero_si512());
    }
    if constexpr (kLast == Last::kept_and_gelu) store(kept, both), kept += kept_stride;
    if constexpr (kLast >= Last::gelu) both = activated(gelu, both, true);
    store(c, both), c += c_stride;
  }
}
template <bool kAdded, Last kLast, class F>
void write_whole_rows(const PanelOut& out, int64_t row, int64_t rows, const F& sums) {
  out.g->past_caches ? write_whole_rows<kAdded, kLast, true>(out, row, rows, sums)
                     : write_whole_rows<kAdded, kLast, false>(out, row, rows, sums);
}

/// PanelOut::write of rows [row, row + rows); sums(i) gives those of row + i. What is the same for
/// all rows is decided before them.
template <class F>
void write_rows(const PanelOut& out, int64_t row, int64_t rows, const F& sums) {
  const GemmBlock& g = *out.g;
  const bool adds = g.added.data != nullptr;
  if (!out.is_whole || (adds && g.gelu != nullptr) || g.c.dtype != DType::bf16 || !out.has_bf16) {
    for (int64_t i = 0; i < rows; ++i) {
      const RowOfSums s = sums(i);
      out.write(row + i, s.low, s.high);
    }
  } else if (g.gelu != nullptr) {
    g.kept.data == nullptr ? write_whole_rows<false, Last::gelu>(out, row, rows, sums)
                           : write_whole_rows<false, Last::kept_and_gelu>(out, row, rows, sums);
  } else if (g.relu) {
    adds ? write_whole_rows<true, Last::relu>(out, row, rows, sums)
         : write_whole_rows<false, Last::relu>(out, row, rows, sums);
  } else {
    adds ? write_whole_rows<true, Last::nothing>(out, row, rows, sums)
         : write_whole_rows<false, Last::nothing>(out, row, rows, sums);
  }
}

/// What follows the elements of a panel.
inline const Int8Columns& columns_of(const GemmBlock& g, const char* panel) {
  return *reinterpret_cast<const Int8Columns*>(panel + g.inner * kInt8Columns);
}

/// Sums of products in int8 of a row whose unit is `unit`. Joined by name, since the compiler may
/// or may not join a product and a sum: the bits would depend on it.
inline RowOfSums scaled_sums(const RowOfSums& scale, const RowOfSums& bias, float unit, __m512i a,
                             __m512i b) {
  const __m512 u = _mm512_set1_ps(unit);
  return {_mm512_fmadd_ps(_mm512_cvtepi32_ps(a), _mm512_mul_ps(u, scale.low), bias.low),
          _mm512_fmadd_ps(_mm512_cvtepi32_ps(b), _mm512_mul_ps(u, scale.high), bias.high)};
}

/// Where 32 columns of sums of products in int8 go.
struct Int8PanelOut : PanelOut {
  __m512 scale_low, scale_high;

  Int8PanelOut(const GemmBlock& block, int64_t first, const char* panel) : PanelOut(block, first) {
    scale_low = _mm512_loadu_ps(columns_of(block, panel).scale);
    scale_high = _mm512_loadu_ps(columns_of(block, panel).scale + 16);
  }
  RowOfSums scaled(int64_t row, __m512i a, __m512i b) const {
    return scaled_sums({scale_low, scale_high}, {bias_low, bias_high}, g->scale[row], a, b);
  }
  void store(int64_t row, __m512i a, __m512i b) const {
    const RowOfSums sums = scaled(row, a, b);
    write(row, sums.low, sums.high);
  }
};

/// Products in bf16 by `block`, whose groups of a are tiles.
inline GemmCode bf16_code(void (*block)(const GemmBlock&)) {
  return {.columns = 32,
          .inner_step = 32,
          .inner_chunk = 1024,
          .block_rows = 256,
          .group_rows = 32,
          .packed = DType::bf16,
          .has_tail = true,
          .pack = pack_bf16,
          .pack_transposed = pack_transposed_bf16,
          .block = block};
}
/// Products in int8 by `block`.
inline GemmCode int8_code(int64_t group_rows, int8_t zero_point, void (*block)(const GemmBlock&)) {
  return {.columns = kInt8Columns,
          .inner_step = 64,
          .inner_chunk = kMostInt8Inner,
          .block_rows = 256,
          .group_rows = group_rows,
          .packed = DType::i8,
          .tail = sizeof(Int8Columns),
          .zero_point = zero_point,
          .has_tail = true,
          .pack = pack_int8,
          .pack_transposed = nullptr,
          .block = block};
}

/// Calls f.operator()<n>(row) for rows [row, end), n of them at a time, in like parts of as many as
/// registers hold: a part of a few rows would wait for its own sums.
template <int kMost = 12, class F>
void for_rows_in_registers(int64_t row, int64_t end, const F& f) {
  for (int64_t parts = (end - row + kMost - 1) / kMost; parts > 0; --parts) {
    const int64_t rows = (end - row + parts - 1) / parts;
    [&]<int... n>(std::integer_sequence<int, n...>) {
      ((rows == n + 1 ? f.template operator()<n + 1>(row) : void()), ...);
    }
    (std::make_integer_sequence<int, kMost>());
    row += rows;
  }
}

}  // namespace
}  // namespace heddle::cpu

#pragma GCC pop_options
#endif
