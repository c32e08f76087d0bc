// Packing of rows into tiles.
#include "heddle/kernels/cpu/gemm/bf16_tiles.h"

#include "heddle/kernels/cpu/gemm/bf16_shuffle.h"
#include "heddle/kernels/cpu/matrix_unit.h"

namespace heddle::cpu {

bool has_tiles() { return matrix_unit() == MatrixUnit::amx; }

#if defined(__x86_64__)
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl")

namespace {

inline __m512i load(const uint16_t* from, __mmask32 columns) {
  return _mm512_maskz_loadu_epi16(columns, from);
}

}  // namespace

void pack_left(const TileSource& source, const Tiles& to) {
  for (int64_t r = 0; r < source.count; r += kTileRows) {
    const TileRows part(source, r, kTileRows);
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
  const __m512i zero = _mm512_setzero_si512();
  for (int64_t r = 0; r < source.count; r += kTileInner) {
    const TileRows part(source, r, kTileInner);
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

void pack_right_transposed(const TileSource& source, const Tiles& to) {
  for (int64_t r = 0; r < source.count; r += kTileRows) {
    const TileRows part(source, r, kTileRows);
    // The columns of rows that are not there may hold anything.
    const uint16_t* row[kTileRows];
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
#endif

}  // namespace heddle::cpu
