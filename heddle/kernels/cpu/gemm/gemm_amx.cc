// Matrix products in bf16 and int8 by AMX: 32 x 32 sums in four tiles, 64 bytes of inner elements
// at a step.
#if defined(__x86_64__)
#include "heddle/kernels/cpu/gemm/amx_shape.h"
#include "heddle/kernels/cpu/gemm/gemm_panel.h"

namespace heddle::cpu {
namespace {

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512bf16,amx-tile,amx-bf16,amx-int8")

// Sums on their way between tiles and c: f32, or i32 of products in int8.
struct alignas(64) Sums {
  float at[32][32];
};

// What differs between the formats.
struct Bf16 {
  static constexpr int64_t kBytes = 2;  // of an element
  struct Out : PanelOut {
    Out(const GemmBlock& block, int64_t first, const char*) : PanelOut(block, first) {}
    void store_sums(int64_t row, const float* s) const {
      store(row, _mm512_load_ps(s), _mm512_load_ps(s + 16));
    }
  };
};
struct Int8 {
  static constexpr int64_t kBytes = 1;
  struct Out : Int8PanelOut {
    using Int8PanelOut::Int8PanelOut;
    void store_sums(int64_t row, const float* s) const {
      store(row, _mm512_load_si512(s), _mm512_load_si512(s + 16));
    }
  };
};

void load_sums(const PanelOut& out, int64_t row, int64_t rows, Sums* s) {
  for (int64_t r = 0; r < rows; ++r) {
    __m512 a, b;
    out.load(row + r, &a, &b);
    _mm512_store_ps(s->at[r], a);
    _mm512_store_ps(s->at[r] + 16, b);
  }
}

constexpr int64_t kSumStride = 32 * sizeof(float);

// Where tiles of a lie: 16 rows from row on, `stride` bytes apart, the next 64 bytes of inner
// elements `step` bytes on.
struct TilesOfA {
  const char* at;
  int64_t stride, step;
  TilesOfA(const GemmBlock& g, int64_t row, int64_t element) {
    const bool packed = g.group_bytes > 0;
    stride = packed ? 64 : g.a_stride * element;
    step = packed ? 2048 : 64;
    at = static_cast<const char*>(g.a) + (packed ? row / 32 * g.group_bytes : row * stride);
  }
};

// How far ahead of a product of few rows weights are fetched into the second cache, in bytes. The
// processor alone does not look far enough: one row times 240 MB of weights runs at 11 GB/s a
// thread without, at 14 with it, as plain reading does (Xeon of 2023, 2026-11).
constexpr int64_t kAhead = 16 << 10;

// 17 to 32 rows times a panel, or, not `kLower`, up to 16; the tiles have been shaped. Loads of two
// tiles of a leave the first cache to the panel, which the next rows need again: 15 to 25 % faster
// than plain loads.
template <class Format, bool kLower>
void rows_times_panel(const GemmBlock& g, int64_t row, int64_t rows, const char* b,
                      const typename Format::Out& out) {
  Sums s;
  if (g.accumulate) {
    load_sums(out, row, rows, &s);
    memory_is_read();
    _tile_loadd(0, s.at[0], kSumStride);
    _tile_loadd(1, s.at[0] + 16, kSumStride);
    if constexpr (kLower) _tile_loadd(2, s.at[16], kSumStride);
    if constexpr (kLower) _tile_loadd(3, s.at[16] + 16, kSumStride);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    if constexpr (kLower) _tile_zero(2);
    if constexpr (kLower) _tile_zero(3);
  }
  const TilesOfA a(g, row, Format::kBytes);
  const char *upper = a.at, *lower = a.at + 16 * a.stride;
  for (int64_t l = 0; l < g.inner; l += 64 / Format::kBytes) {
    if constexpr (kLower) {
      _tile_stream_loadd(4, upper, a.stride);
    } else {
      _tile_loadd(4, upper, a.stride);
    }
    _tile_loadd(6, b, 64);
    _tile_loadd(7, b + 1024, 64);
    if constexpr (kLower) {
      _tile_stream_loadd(5, lower, a.stride);
    } else {
      for (int64_t i = 0; i < 2048; i += 64) _mm_prefetch(b + kAhead + i, _MM_HINT_T1);
    }
    if constexpr (Format::kBytes == 2) {
      _tile_dpbf16ps(0, 4, 6);
      _tile_dpbf16ps(1, 4, 7);
      if constexpr (kLower) _tile_dpbf16ps(2, 5, 6);
      if constexpr (kLower) _tile_dpbf16ps(3, 5, 7);
    } else {
      _tile_dpbssd(0, 4, 6);
      _tile_dpbssd(1, 4, 7);
      if constexpr (kLower) _tile_dpbssd(2, 5, 6);
      if constexpr (kLower) _tile_dpbssd(3, 5, 7);
    }
    upper += a.step, lower += a.step, b += 2048;
  }
  _tile_stored(0, s.at[0], kSumStride);
  _tile_stored(1, s.at[0] + 16, kSumStride);
  if constexpr (kLower) _tile_stored(2, s.at[16], kSumStride);
  if constexpr (kLower) _tile_stored(3, s.at[16] + 16, kSumStride);
  for (int64_t r = 0; r < rows; ++r) out.store_sums(row + r, s.at[r]);
}

template <class Format>
void block(const GemmBlock& g) {
  const int64_t full = g.c.rows / 32 * 32, rest = g.c.rows - full;
  // Calls f(out, panel) for each panel.
  const auto for_panels = [&](const auto& f) {
    for (int64_t column = 0; column < g.c.width; column += 32) {
      const char* b = static_cast<const char*>(g.b) + column / 32 * g.panel_bytes;
      f(typename Format::Out(g, column, b), b);
    }
  };
  if (full > 0) {
    shape_tiles(16, 16);
    for_panels([&](const typename Format::Out& out, const char* b) {
      for (int64_t row = 0; row < full; row += 32) {
        rows_times_panel<Format, true>(g, row, 32, b, out);
      }
    });
  }
  if (rest > 0) {
    shape_tiles(rest < 16 ? rest : 16, rest < 16 ? 0 : rest - 16);
    for_panels([&](const typename Format::Out& out, const char* b) {
      rest > 16 ? rows_times_panel<Format, true>(g, full, rest, b, out)
                : rows_times_panel<Format, false>(g, full, rest, b, out);
    });
  }
  _tile_release();
}

#pragma GCC pop_options

}  // namespace

const GemmCode& gemm_amx() {
  static const GemmCode code = bf16_code(block<Bf16>);
  return code;
}
const GemmCode& gemm_int8_amx() {
  static const GemmCode code = int8_code(32, 0, block<Int8>);
  return code;
}

}  // namespace heddle::cpu
#endif
