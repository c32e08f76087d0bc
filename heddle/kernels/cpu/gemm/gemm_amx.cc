// Matrix products in bf16 and int8 by AMX: 32 x 32 sums in four tiles, 64 bytes of inner elements
// at a step.
#if defined(__x86_64__)
#include <new>

#include "heddle/kernels/cpu/gemm/amx_shape.h"
#include "heddle/kernels/cpu/gemm/gemm_panel.h"

namespace heddle::cpu {
namespace {

#pragma GCC push_options
// Not yet for AMX: write_rows() is not, and would call a function for each row's sums.
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512bf16")

// Sums on their way between tiles and c: f32, or i32 of products in int8.
struct alignas(64) Sums {
  float at[32][32];
};

// What differs between the formats.
struct Bf16 {
  static constexpr int64_t kBytes = 2;  // of an element
  struct Out : PanelOut {
    Out(const GemmBlock& block, int64_t first, const char*) : PanelOut(block, first) {}
    void store_sums(int64_t row, int64_t rows, const float* sums) const {
      write_rows(*this, row, rows, [at = sums, low = bias_low, high = bias_high](int64_t i) {
        return RowOfSums{_mm512_add_ps(_mm512_load_ps(at + 32 * i), low),
                         _mm512_add_ps(_mm512_load_ps(at + 32 * i + 16), high)};
      });
    }
    // Where tiles of sums lie in c as they are; null where they do not.
    float* in_place(int64_t row) const {
      return is_plain() && g->bias == nullptr ? g->c.row<float>(row) + column : nullptr;
    }
  };
};
struct Int8 {
  static constexpr int64_t kBytes = 1;
  struct Out : Int8PanelOut {
    using Int8PanelOut::Int8PanelOut;
    void store_sums(int64_t row, int64_t rows, const float* sums) const {
      const RowOfSums scale = {scale_low, scale_high}, bias = {bias_low, bias_high};
      write_rows(*this, row, rows, [at = sums, unit = g->scale + row, scale, bias](int64_t i) {
        return scaled_sums(scale, bias, unit[i], _mm512_load_si512(at + 32 * i),
                           _mm512_load_si512(at + 32 * i + 16));
      });
    }
    float* in_place(int64_t) const { return nullptr; }
  };
};

void load_sums(const PanelOut& out, int64_t row, int64_t rows, float* sums) {
  for (int64_t r = 0; r < rows; ++r, sums += 32) {
    __m512 a, b;
    out.load(row + r, &a, &b);
    _mm512_store_ps(sums, a);
    _mm512_store_ps(sums + 16, b);
  }
}

#pragma GCC target("amx-tile,amx-bf16,amx-int8")

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

// What comes next where there are more rows, fetched into the second cache little by little while
// tiles are multiplied: the next panel of b, which lies behind this one, and the rows that the next
// block will read.
class FetchedAhead {
 public:
  // `step`: inner elements of a step.
  FetchedAhead(const GemmBlock& g, int64_t step) : rows_of_next_(g.next) {
    int64_t lines = 0;
    for (const Rows& x : g.next) lines += x.rows * ((x.width * size_of(x.dtype) + 63) / 64);
    if (lines == 0) return;
    const int64_t steps = (g.c.rows + 31) / 32 * ((g.c.width + 31) / 32) * (g.inner / step);
    row_lines_ = (lines + steps - 1) / steps;
    begin();
  }
  // The next panel, while this one is gone through for `rows` rows of c, 32 at a time.
  void set_panel(const char* next, int64_t rows) {
    panel_ = next, panel_bytes_ = next == nullptr ? 0 : (1024 + rows - 1) / rows * 64;
  }
  void fetch_some() {
    const char* at = panel_;
    panel_ += panel_bytes_;
    for (; at != panel_; at += 64) _mm_prefetch(at, _MM_HINT_T1);
    if (row_lines_ > 0) fetch_rows();
  }

 private:
  // Apart from what every step does, whose counters are to stay in registers.
  __attribute__((noinline)) void fetch_rows() {
    for (int64_t i = 0; i < row_lines_ && rows_ > 0; ++i) {
      _mm_prefetch(at_ + column_, _MM_HINT_T1);
      column_ += 64;
      if (column_ < width_) continue;
      column_ = 0, at_ += stride_, --rows_;
      if (rows_ == 0 && which_ == 0) which_ = 1, begin();
    }
  }
  void begin() {
    const Rows& x = rows_of_next_[which_];
    at_ = static_cast<const char*>(x.data), rows_ = x.rows;
    stride_ = x.stride * size_of(x.dtype), width_ = x.width * size_of(x.dtype);
  }

  const char* panel_ = nullptr;
  int64_t panel_bytes_ = 0;  // a step
  const Rows* rows_of_next_;
  const char* at_ = nullptr;
  int64_t stride_ = 0, width_ = 0, rows_ = 0, column_ = 0, row_lines_ = 0;
  int which_ = 0;
};

// Inner elements [begin, end) of a block, which are multiplied before the next ones: what the first
// cache holds of a panel.
struct InnerPart {
  int64_t begin, end;
  bool is_first, is_last;
};

// Sums of some rows that are multiplied out, stored little by little while the next ones are.
template <class Out>
class StoredLate {
 public:
  // Memory for the next rows, while those before are stored.
  Sums& next() { return sums_[at_ ^ 1]; }
  // next() holds the sums of `rows` rows; those before have been stored.
  void begin(const Out& out, int64_t row, int64_t rows) {
    at_ ^= 1, out_ = &out, row_ = row, rows_ = rows, stored_ = 0;
  }
  void store(int64_t most) {
    const int64_t count = most < rows_ - stored_ ? most : rows_ - stored_;
    if (out_->g->placed == nullptr) {
      out_->store_sums(row_ + stored_, count, sums_[at_].at[stored_]);
    } else {
      store_placed(count);
    }
    stored_ += count;
  }
  bool is_done() const { return stored_ == rows_; }

 private:
  void store_placed(int64_t count) {
    for (int64_t i = stored_; i < stored_ + count;) {
      const PlacedRow& placed = out_->g->placed[row_ + i];
      const int64_t left = stored_ + count - i, n = placed.alike < left ? placed.alike : left;
      if (placed.to >= 0) out_->store_sums(placed.to, n, sums_[at_].at[i]);
      i += n;
    }
  }

  Sums sums_[2];
  int at_ = 0;
  const Out* out_ = nullptr;
  int64_t row_ = 0, rows_ = 0, stored_ = 0;
};

// 17 to 32 rows times a part of a panel, or, not `kLower`, up to 16; the tiles have been shaped.
// With `kLate` the sums wait until the next rows are multiplied; else they are stored at once.
// `waiting` has the sums of the parts before, and then of these, too. Loads of two tiles of a leave
// the first cache to the panel, which the next rows need again: 15 to 25 % faster than plain loads.
template <class Format, bool kLower, bool kLate>
__attribute__((noinline)) void rows_times_panel(const GemmBlock& g, int64_t row, int64_t rows,
                                                const InnerPart& part, const char* b,
                                                const typename Format::Out& out, float* waiting,
                                                StoredLate<typename Format::Out>& late,
                                                FetchedAhead& ahead) {
  float* const in_place = kLower ? out.in_place(row) : nullptr;
  const int64_t c_stride = in_place == nullptr ? kSumStride : g.c.stride * sizeof(float);
  float* const c = in_place == nullptr ? late.next().at[0] : in_place;
  if (g.accumulate || !part.is_first) {
    if (part.is_first && in_place == nullptr) load_sums(out, row, rows, c);
    const float* const from = part.is_first ? c : waiting;
    const int64_t stride = part.is_first ? c_stride : kSumStride;
    memory_is_read();
    _tile_loadd(0, from, stride);
    _tile_loadd(1, from + 16, stride);
    if constexpr (kLower) _tile_loadd(2, from + stride * 4, stride);
    if constexpr (kLower) _tile_loadd(3, from + stride * 4 + 16, stride);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    if constexpr (kLower) _tile_zero(2);
    if constexpr (kLower) _tile_zero(3);
  }
  constexpr int64_t kStep = 64 / Format::kBytes;
  const TilesOfA a(g, row, Format::kBytes);
  // Rows so near to each other are read again for the next run: those stay in the first cache.
  const bool stays_near = g.run > 0 && a.stride <= 128;
  b += part.begin / kStep * 2048;
  const int64_t late_rows = (32 * kStep + part.end - part.begin - 1) / (part.end - part.begin);
  for (int64_t l = part.begin; l < part.end;) {
    const char* upper = a.at + l / kStep * a.step;
    int64_t end = part.end;
    if (g.run > 0) {
      const int64_t at = g.inner_begin + l, run = at / g.run, in_run = at - run * g.run;
      upper = a.at + g.starts[run] + in_run * Format::kBytes;
      end = l + g.run - in_run < end ? l + g.run - in_run : end;
    }
    const char* lower = upper + 16 * a.stride;
    for (; l < end; l += kStep) {
      if constexpr (kLower) {
        if (stays_near) {
          _tile_loadd(4, upper, a.stride);
        } else {
          _tile_stream_loadd(4, upper, a.stride);
        }
      } else {
        _tile_loadd(4, upper, a.stride);
      }
      _tile_loadd(6, b, 64);
      _tile_loadd(7, b + 1024, 64);
      if constexpr (kLower) {
        if (stays_near) {
          _tile_loadd(5, lower, a.stride);
        } else {
          _tile_stream_loadd(5, lower, a.stride);
        }
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
      if constexpr (kLower) ahead.fetch_some();
      if constexpr (kLate) {
        if (!late.is_done()) late.store(late_rows);
      }
    }
  }
  float* const to = part.is_last ? c : waiting;
  const int64_t stride = part.is_last ? c_stride : kSumStride;
  _tile_stored(0, to, stride);
  _tile_stored(1, to + 16, stride);
  if constexpr (kLower) _tile_stored(2, to + stride * 4, stride);
  if constexpr (kLower) _tile_stored(3, to + stride * 4 + 16, stride);
  if (!part.is_last || in_place != nullptr) return;
  late.begin(out, row, rows);
  if constexpr (!kLate) late.store(rows);
}

// The part of a panel that the first cache holds beside rows of a and sums: bytes of a column.
constexpr int64_t kInFirstCache = 1024;
// Rows of a block whose sums wait: those of fewer go to caches, at once.
constexpr int64_t kWorthWaiting = 128;

template <class Format>
void block(const GemmBlock& g) {
  using Out = typename Format::Out;
  constexpr int64_t kStep = 64 / Format::kBytes;
  const int64_t full = g.c.rows / 32 * 32, rest = g.c.rows - full;
  const int64_t steps = g.inner / kStep;
  const int64_t column_bytes = g.inner * Format::kBytes;
  const int64_t parts = g.c.rows <= 32 ? 1 : (column_bytes + kInFirstCache - 1) / kInFirstCache;
  const int64_t part_steps = (steps + parts - 1) / parts;
  FetchedAhead ahead(g, kStep);
  const int64_t kept_panel = g.begins && g.ends ? 0 : (g.c.rows + 31) / 32 * 32 * 32;
  StoredLate<Out> late;
  // What rows share of a panel, and of the one before, whose last sums are still to be stored.
  alignas(Out) char outs[2][sizeof(Out)];
  // Calls f(out, panel, part, sums) for each part of each panel, which `rows` rows of c are to
  // have.
  const auto for_parts = [&](int64_t rows, const auto& f) {
    for (int64_t column = 0; column < g.c.width; column += 32) {
      const char* b = static_cast<const char*>(g.b) + column / 32 * g.panel_bytes;
      const bool goes_on = g.goes_on || column + 32 < g.c.width;
      ahead.set_panel(goes_on ? b + g.panel_bytes : nullptr, rows);
      const Out& out = *new (outs[column / 32 % 2]) Out(g, column, b);
      float* const sums = g.sums + column / 32 * kept_panel;
      for (int64_t at = 0; at < steps; at += part_steps) {
        const int64_t end = at + part_steps < steps ? at + part_steps : steps;
        f(out, b, InnerPart{at * kStep, end * kStep, g.begins && at == 0, g.ends && end == steps},
          sums);
      }
    }
    if (!late.is_done()) late.store(32);
  };
  if (full > 0) {
    shape_tiles(16, 16);
    const auto& times = full >= kWorthWaiting ? rows_times_panel<Format, true, true>
                                              : rows_times_panel<Format, true, false>;
    for_parts(full, [&](const Out& out, const char* b, const InnerPart& part, float* sums) {
      for (int64_t row = 0; row < full; row += 32) {
        times(g, row, 32, part, b, out, sums + row * 32, late, ahead);
      }
    });
  }
  if (rest > 0) {
    shape_tiles(rest < 16 ? rest : 16, rest < 16 ? 0 : rest - 16);
    const auto& times =
        rest > 16 ? rows_times_panel<Format, true, false> : rows_times_panel<Format, false, false>;
    for_parts(32, [&](const Out& out, const char* b, const InnerPart& part, float* sums) {
      times(g, full, rest, part, b, out, sums + full * 32, late, ahead);
    });
  }
  _tile_release();
  if (g.past_caches) _mm_sfence();
}

#pragma GCC pop_options

}  // namespace

// From so many bytes on, c would push b out of the second-level caches; of a pass without
// gradients, whose next product reads it, from the second on: images by ResNet-50 and ViT 4 %
// faster.
constexpr int64_t kPastCaches = 4 << 20, kPastCachesOfConstant = 13 << 20;

const GemmCode& gemm_amx() {
  static const GemmCode code = [] {
    GemmCode c = bf16_code(block<Bf16>);
    c.past_caches = kPastCaches, c.past_caches_of_constant = kPastCachesOfConstant;
    c.fetches = true, c.has_gelu = true, c.keeps_sums = true;
    c.has_windows = true;
    c.of_both = {.inner = 256, .sums = 160 << 10}, c.inner_at_once = 2048;
    return c;
  }();
  return code;
}
const GemmCode& gemm_int8_amx() {
  static const GemmCode code = [] {
    GemmCode c = int8_code(32, 0, block<Int8>);
    c.past_caches = kPastCaches, c.past_caches_of_constant = kPastCachesOfConstant;
    c.has_gelu = true, c.keeps_sums = true;
    return c;
  }();
  return code;
}

}  // namespace heddle::cpu
#endif
