// Packing of rows into tiles, and products of tiles by AMX, four sums at a time, or by vectors.
#include "heddle/kernels/cpu/gemm/bf16_tiles.h"

#include "heddle/kernels/cpu/gemm/amx_shape.h"
#include "heddle/kernels/cpu/gemm/bf16_shuffle.h"
#include "heddle/kernels/cpu/gemm/gemm_block.h"
#include "heddle/kernels/cpu/matrix_unit.h"

namespace heddle::cpu {

bool has_tiles() { return has_bf16_instructions(); }

#if defined(__x86_64__)
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl")

namespace {

// 16 values rounded to bf16, to nearest even; NaN stays NaN (as `narrow` in simd-inl.h: the CPU's
// own instruction makes zeros of the smallest numbers).
inline __m256i rounded(__m512 v) {
  const __m512i u = _mm512_castps_si512(v);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
  const __m512i half = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff));
  const __m512i near = _mm512_srli_epi32(_mm512_add_epi32(u, half), 16);
  const __m512i quiet = _mm512_or_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(0x40));
  const __mmask16 is_nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
  return _mm512_cvtepi32_epi16(_mm512_mask_mov_epi32(near, is_nan, quiet));
}

// Some of 32 elements of bf16, or of f32 rounded; zeros beside them.
inline __m512i load(const uint16_t* p, __mmask32 which) {
  return _mm512_maskz_loadu_epi16(which, p);
}
inline __m512i load(const float* p, __mmask32 which) {
  const __m512 low = _mm512_maskz_loadu_ps(static_cast<__mmask16>(which), p);
  const __m512 high = _mm512_maskz_loadu_ps(static_cast<__mmask16>(which >> 16), p + 16);
  return _mm512_inserti64x4(_mm512_castsi256_si512(rounded(low)), rounded(high), 1);
}

template <class T>
void pack_right_of(const TileSource& source, const Tiles& to) {
  const __m512i zero = _mm512_setzero_si512();
  for (int64_t r = 0; r < source.count; r += kTileInner) {
    const TileRows<T> part(source, r, kTileInner);
    for (int64_t c = 0; c < source.width; c += 2 * kTileRows) {
      const __mmask32 columns = first_16bit(source.width - c);
      char* first = to.at(r / kTileInner, c / kTileRows);
      // A tile that is not there gets what the first one gets.
      char* second = source.width - c > kTileRows ? first + to.column * kTileBytes : first;
      const auto store = [&](__m512i a, __m512i b) {
        __m512i low, high;
        interleave(a, b, &low, &high);
        _mm512_store_si512(second, high);
        _mm512_store_si512(first, low);
        first += 64, second += 64;
      };
      int64_t i = 0;
      for (; i + 1 < part.count(); i += 2) {
        store(load(part.row(i) + c, columns), load(part.row(i + 1) + c, columns));
      }
      if (i < part.count()) store(load(part.row(i) + c, columns), zero), i += 2;
      for (; i < kTileInner; i += 2) store(zero, zero);
    }
  }
}

template <class T>
void pack_right_transposed_of(const TileSource& source, const Tiles& to) {
  for (int64_t r = 0; r < source.count; r += kTileRows) {
    const TileRows<T> part(source, r, kTileRows);
    // The columns of rows that are not there may hold anything.
    const T* row[kTileRows];
    for (int64_t i = 0; i < kTileRows; ++i) row[i] = part.row(i < part.count() ? i : 0);
    for (int64_t c = 0; c < source.width; c += kTileInner) {
      const __mmask32 columns = first_16bit(source.width - c);
      char* tile = to.at(c / kTileInner, r / kTileRows);
      __m512i word[16];
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) word[i] = load(row[i] + c, columns);
      transpose_16x16(word);
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) _mm512_store_si512(tile + i * 64, word[i]);
    }
  }
}

}  // namespace

void pack_left(const TileSource& source, const Tiles& to) {
  for (int64_t r = 0; r < source.count; r += kTileRows) {
    const TileRows<uint16_t> part(source, r, kTileRows);
    for (int64_t c = 0; c < source.width; c += kTileInner) {
      const __mmask32 columns = first_16bit(source.width - c);
      char* tile = to.at(r / kTileRows, c / kTileInner);
      for (int64_t i = 0; i < part.count(); ++i) {
        _mm512_store_si512(tile + i * 64, load(part.row(i) + c, columns));
      }
    }
  }
}

void pack_right(const TileSource& source, const Tiles& to) {
  source.x.dtype == DType::f32 ? pack_right_of<float>(source, to)
                               : pack_right_of<uint16_t>(source, to);
}

void pack_right_transposed(const TileSource& source, const Tiles& to) {
  source.x.dtype == DType::f32 ? pack_right_transposed_of<float>(source, to)
                               : pack_right_transposed_of<uint16_t>(source, to);
}

void pack_left_transposed(const TileSource& source, const Tiles& to) {
  const __m512i zero = _mm512_setzero_si512();
  for (int64_t r = 0; r < source.count; r += kTileInner) {
    const TileRows<uint16_t> part(source, r, kTileInner);
    for (int64_t c = 0; c < source.width; c += 2 * kTileRows) {
      const __mmask32 columns = first_16bit(source.width - c);
      const auto row = [&](int64_t i) {
        return i < part.count() ? load(part.row(i) + c, columns) : zero;
      };
      __m512i low[16], high[16];
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) interleave(row(2 * i), row(2 * i + 1), &low[i], &high[i]);
      transpose_16x16(low);
      char* tile = to.at(c / kTileRows, r / kTileInner);
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) _mm512_store_si512(tile + i * 64, low[i]);
      transpose_16x16(high);
      tile += to.row * kTileBytes;
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) _mm512_store_si512(tile + i * 64, high[i]);
    }
  }
}

void pack_bf16(const Rows& b, bool transposed, void* panel) {
  const Tiles to{static_cast<char*>(panel), 2, 1};
  if (transposed) return pack_right_transposed({b, 0, b.width, 0, b.rows < 32 ? b.rows : 32}, to);
  pack_right({b, 0, b.width < 32 ? b.width : 32, 0, b.rows}, to);
}

void pack_transposed_bf16(const Rows& a, int64_t group_bytes, void* to) {
  char* tiles = static_cast<char*>(to);
  for (int64_t m = 0; m < a.width; m += 32) {
    const int64_t left = a.width - m;
    pack_left_transposed({a, m, left < 32 ? left : 32, 0, a.rows}, {tiles, 1, 2});
    tiles += group_bytes;
  }
}

void transpose_left(const Tiles& from, int64_t rows, const Tiles& to, int64_t inner) {
  __m512i low[16], high[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) {
    low[i] = high[i] = _mm512_setzero_si512();
    if (i >= 8 && rows <= kTileRows) continue;
    const char* pair = from.at(i / 8, 0) + i % 8 * 128;
    interleave(_mm512_load_si512(pair), _mm512_load_si512(pair + 64), &low[i], &high[i]);
  }
  transpose_16x16(low);
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) _mm512_store_si512(to.at(0, 0) + i * 64, low[i]);
  if (inner <= kTileRows) return;
  transpose_16x16(high);
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) _mm512_store_si512(to.at(1, 0) + i * 64, high[i]);
}

#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("amx-tile,amx-bf16")

namespace {

// Steps between tiles, in bytes.
struct Steps {
  int64_t left_row, left_inner, right_inner, right_column, sum_row, sum_column;
  explicit Steps(const TileProduct& p)
      : left_row(p.left.row * kTileBytes),
        left_inner(p.left.column * kTileBytes),
        right_inner(p.right.row * kTileBytes),
        right_column(p.right.column * kTileBytes),
        sum_row(p.sum.row * kTileBytes),
        sum_column(p.sum.column * kTileBytes) {}
};

// kRows by kColumns sums, each 1 or 2; a, b and c are the first tiles.
template <int kRows, int kColumns>
inline void multiply_some(const Steps& step, const char* a, const char* b, char* c, int64_t inner,
                          bool accumulate) {
  constexpr bool kLower = kRows == 2, kRight = kColumns == 2;
  char *right = c + step.sum_column, *lower = c + step.sum_row;
  char* last = lower + step.sum_column;
  if (accumulate) {
    _tile_loadd(0, c, 64);
    if constexpr (kRight) _tile_loadd(1, right, 64);
    if constexpr (kLower) _tile_loadd(2, lower, 64);
    if constexpr (kLower && kRight) _tile_loadd(3, last, 64);
  } else {
    _tile_zero(0);
    if constexpr (kRight) _tile_zero(1);
    if constexpr (kLower) _tile_zero(2);
    if constexpr (kLower && kRight) _tile_zero(3);
  }
  for (int64_t l = 0; l < inner; ++l) {
    _tile_loadd(4, a, 64);
    _tile_loadd(6, b, 64);
    if constexpr (kRight) _tile_loadd(7, b + step.right_column, 64);
    if constexpr (kLower) _tile_loadd(5, a + step.left_row, 64);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (kRight) _tile_dpbf16ps(1, 4, 7);
    if constexpr (kLower) _tile_dpbf16ps(2, 5, 6);
    if constexpr (kLower && kRight) _tile_dpbf16ps(3, 5, 7);
    a += step.left_inner;
    b += step.right_inner;
  }
  _tile_stored(0, c, 64);
  if constexpr (kRight) _tile_stored(1, right, 64);
  if constexpr (kLower) _tile_stored(2, lower, 64);
  if constexpr (kLower && kRight) _tile_stored(3, last, 64);
}

// All rows of kColumns columns of sums.
template <int kColumns>
inline void multiply_columns(const TileProduct& p, const Steps& step, const char* b, char* c) {
  const char* a = p.left.data;
  int64_t rows = p.rows;
  for (; rows >= 2; rows -= 2) {
    multiply_some<2, kColumns>(step, a, b, c, p.inner, p.accumulate);
    a += 2 * step.left_row;
    c += 2 * step.sum_row;
  }
  if (rows > 0) multiply_some<1, kColumns>(step, a, b, c, p.inner, p.accumulate);
}

void multiply_tiles_amx(const TileProduct& p) {
  memory_is_read();
  const Steps step(p);
  const char* b = p.right.data;
  char* c = p.sum.data;
  int64_t columns = p.columns;
  for (; columns >= 2; columns -= 2) {
    multiply_columns<2>(p, step, b, c);
    b += 2 * step.right_column;
    c += 2 * step.sum_column;
  }
  if (columns > 0) multiply_columns<1>(p, step, b, c);
}

// Loads and zeros do not do it; what the tiles hold is of no use any more.
void stay_awake_amx() { _tile_dpbf16ps(0, 4, 6); }

void begin_tiles_amx() { shape_tiles(16, 16); }
void end_tiles_amx() { _tile_release(); }

}  // namespace

#pragma GCC pop_options

namespace {
bool is_amx() { return matrix_unit() == MatrixUnit::amx; }
}  // namespace

void multiply_tiles(const TileProduct& p) {
  if (is_amx()) return multiply_tiles_amx(p);
  matrix_unit() == MatrixUnit::avx512_bf16 ? multiply_tiles_by_dots(p) : multiply_tiles_by_fma(p);
}
void stay_awake() {
  if (is_amx()) stay_awake_amx();
}
void begin_tiles() {
  if (is_amx()) begin_tiles_amx();
}
void end_tiles() {
  if (is_amx()) end_tiles_amx();
}
#endif

}  // namespace heddle::cpu
