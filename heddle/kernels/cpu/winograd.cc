// The transforms around Winograd's products, 16 channels at a time, for CPUs with AVX-512 BF16.
#include "heddle/kernels/winograd.h"

#include <algorithm>
#include <vector>

#include "heddle/base/parallel.h"
#include "heddle/kernels/cpu/matrix_unit.h"
#include "heddle/kernels/cpu/scratch.h"

#if defined(__x86_64__)
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512bf16")

namespace heddle::cpu {
namespace {

// 16 channels, or fewer by a mask: such loads wait for each other on Zen 5 where they miss the
// caches.
template <bool kWhole>
struct Lanes {
  __mmask16 mask = 0xffff;

  __m512 load(const bf16* p) const {
    const __m256i bits = kWhole ? _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))
                                : _mm256_maskz_loadu_epi16(mask, p);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  }
  __m512 load(const float* p) const {
    return kWhole ? _mm512_loadu_ps(p) : _mm512_maskz_loadu_ps(mask, p);
  }
  void store(__m512 v, bf16* p) const {
    const auto bits = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(v));
    if constexpr (kWhole) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), bits);
    } else {
      _mm256_mask_storeu_epi16(p, mask, bits);
    }
  }
  void store(__m512 v, float* p) const {
    if constexpr (kWhole) {
      _mm512_storeu_ps(p, v);
    } else {
      _mm512_mask_storeu_ps(p, mask, v);
    }
  }
};

// Calls f(channel, lanes) over [0, channels).
template <class F>
void for_channels(int64_t channels, const F& f) {
  const int64_t whole = channels / 16 * 16;
  for (int64_t c = 0; c < whole; c += 16) f(c, Lanes<true>{});
  const auto rest = static_cast<__mmask16>((1 << (channels - whole)) - 1);
  if (rest != 0) f(whole, Lanes<false>{rest});
}

__m512 half(__m512 v) { return _mm512_mul_ps(v, _mm512_set1_ps(0.5f)); }

// A line of tiles of an image.
struct TileLine {
  ImageSize size;     // of its pixels: inputs or outputs
  int64_t pixel = 0;  // the image's first
  int64_t tile = 0;   // the line's first
  int64_t row = 0;    // of pixels, where the line's tiles begin; may be negative
  int64_t tiles = 0;
};

// Calls f(line) for each line of tiles of all images, on all threads.
template <class F>
void for_lines(const WinogradArgs& a, bool of_outputs, const F& f) {
  std::vector<TileLine> lines;
  int64_t tile = 0, pixel = 0;
  for (int64_t i = 0; i < a.images; ++i) {
    const ImageSize size = of_outputs ? a.outputs(i) : a.sizes[i], grid = a.grid(i);
    for (int64_t y = 0; y < grid.height; ++y, tile += grid.width) {
      lines.push_back({size, pixel, tile, 2 * y - (of_outputs ? 0 : a.padding), grid.width});
    }
    pixel += size.height * size.width;
  }
  const int64_t count = std::ssize(lines), bytes = work_of(a).bytes / std::max<int64_t>(1, count);
  parallel_blocks(count, rows_per_block(bytes), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) f(lines[static_cast<size_t>(i)]);
  });
}

// Rows of the pixels [row, row + kSide) x [column, column + kSide) of an image; `outside` for those
// that it does not have.
template <int kSide>
void find_pixels(const Rows& pixels, const TileLine& line, int64_t column, bf16* outside,
                 bf16** at) {
  for (int i = 0; i < kSide; ++i) {
    const int64_t y = line.row + i;
    const bool is_row = y >= 0 && y < line.size.height;
    for (int j = 0; j < kSide; ++j) {
      const int64_t x = column + j;
      const bool is_inside = is_row && x >= 0 && x < line.size.width;
      at[i * kSide + j] =
          is_inside ? pixels.row<bf16>(line.pixel + y * line.size.width + x) : outside;
    }
  }
}

bf16* row_of_zeros(int64_t channels) {
  thread_local std::vector<bf16> zeros;
  if (std::ssize(zeros) < channels) zeros.resize(static_cast<size_t>(channels), bf16(0.0f));
  return zeros.data();
}

void inputs_of_line(const WinogradArgs& a, const TileLine& line) {
  const int64_t channels = a.tiles.width, stride = a.tiles.rows / 16 * a.tiles.stride;
  bf16* const zeros = row_of_zeros(channels);
  for (int64_t t = 0; t < line.tiles; ++t) {
    bf16* at[16];
    find_pixels<4>(a.pixels, line, 2 * t - a.padding, zeros, at);
    bf16* const to = a.tiles.row<bf16>(line.tile + t);
    for_channels(channels, [&](int64_t c, auto lanes) {
      __m512 d[4][4];
      for (int j = 0; j < 4; ++j) {
        const __m512 d0 = lanes.load(at[j] + c), d1 = lanes.load(at[4 + j] + c);
        const __m512 d2 = lanes.load(at[8 + j] + c), d3 = lanes.load(at[12 + j] + c);
        d[0][j] = _mm512_sub_ps(d0, d2), d[1][j] = _mm512_add_ps(d1, d2);
        d[2][j] = _mm512_sub_ps(d2, d1), d[3][j] = _mm512_sub_ps(d1, d3);
      }
      for (int i = 0; i < 4; ++i) {
        bf16* const row = to + 4 * i * stride + c;
        lanes.store(_mm512_sub_ps(d[i][0], d[i][2]), row);
        lanes.store(_mm512_add_ps(d[i][1], d[i][2]), row + stride);
        lanes.store(_mm512_sub_ps(d[i][2], d[i][1]), row + 2 * stride);
        lanes.store(_mm512_sub_ps(d[i][1], d[i][3]), row + 3 * stride);
      }
    });
  }
}

void outputs_of_line(const WinogradArgs& a, const TileLine& line) {
  const int64_t channels = a.tiles.width, stride = a.tiles.rows / 16 * a.tiles.stride;
  const __m512 zero = _mm512_setzero_ps();
  bf16* const nowhere = scratch<bf16, 11>(channels);
  const bool adds = a.added.data != nullptr;
  for (int64_t t = 0; t < line.tiles; ++t) {
    bf16 *at[4], *added[4];
    find_pixels<2>(a.pixels, line, 2 * t, nowhere, at);
    if (adds) find_pixels<2>(a.added, line, 2 * t, row_of_zeros(channels), added);
    const float* const from = a.tiles.row<float>(line.tile + t);
    for_channels(channels, [&](int64_t c, auto lanes) {
      __m512 s[2][4];
      for (int j = 0; j < 4; ++j) {
        const float* const column = from + j * stride + c;
        const __m512 m1 = lanes.load(column + 4 * stride), m2 = lanes.load(column + 8 * stride);
        s[0][j] = _mm512_add_ps(_mm512_add_ps(lanes.load(column), m1), m2);
        s[1][j] = _mm512_sub_ps(_mm512_sub_ps(m1, m2), lanes.load(column + 12 * stride));
      }
      const __m512 bias = a.bias == nullptr ? zero : lanes.load(a.bias + c);
      for (int i = 0; i < 2; ++i) {
        __m512 y0 = _mm512_add_ps(_mm512_add_ps(s[i][0], s[i][1]), s[i][2]);
        __m512 y1 = _mm512_sub_ps(_mm512_sub_ps(s[i][1], s[i][2]), s[i][3]);
        y0 = _mm512_add_ps(y0, bias), y1 = _mm512_add_ps(y1, bias);
        if (adds) {
          y0 = _mm512_add_ps(y0, lanes.load(added[2 * i] + c));
          y1 = _mm512_add_ps(y1, lanes.load(added[2 * i + 1] + c));
        }
        if (a.relu) y0 = _mm512_max_ps(zero, y0), y1 = _mm512_max_ps(zero, y1);  // NaN stays
        lanes.store(y0, at[2 * i] + c);
        lanes.store(y1, at[2 * i + 1] + c);
      }
    });
  }
}

void outputs_backward_of_line(const WinogradArgs& a, const TileLine& line) {
  const int64_t channels = a.tiles.width, stride = a.tiles.rows / 16 * a.tiles.stride;
  bf16* const zeros = row_of_zeros(channels);
  for (int64_t t = 0; t < line.tiles; ++t) {
    bf16* at[4];
    find_pixels<2>(a.pixels, line, 2 * t, zeros, at);
    bf16* const to = a.tiles.row<bf16>(line.tile + t);
    for_channels(channels, [&](int64_t c, auto lanes) {
      __m512 r[4][2];
      for (int j = 0; j < 2; ++j) {
        const __m512 y0 = lanes.load(at[j] + c), y1 = lanes.load(at[2 + j] + c);
        r[0][j] = y0, r[1][j] = _mm512_add_ps(y0, y1), r[2][j] = _mm512_sub_ps(y0, y1);
        r[3][j] = _mm512_sub_ps(_mm512_setzero_ps(), y1);
      }
      for (int i = 0; i < 4; ++i) {
        bf16* const row = to + 4 * i * stride + c;
        lanes.store(r[i][0], row);
        lanes.store(_mm512_add_ps(r[i][0], r[i][1]), row + stride);
        lanes.store(_mm512_sub_ps(r[i][0], r[i][1]), row + 2 * stride);
        lanes.store(_mm512_sub_ps(_mm512_setzero_ps(), r[i][1]), row + 3 * stride);
      }
    });
  }
}

// G times three numbers, 16 lanes each.
void times_g(__m512 g0, __m512 g1, __m512 g2, __m512 to[4]) {
  const __m512 ends = _mm512_add_ps(g0, g2);
  to[0] = g0, to[3] = g2;
  to[1] = half(_mm512_add_ps(ends, g1)), to[2] = half(_mm512_sub_ps(ends, g1));
}
// Its transpose times four.
void times_g_transposed(const __m512 u[4], __m512 to[3]) {
  const __m512 sum = half(_mm512_add_ps(u[1], u[2]));
  to[0] = _mm512_add_ps(u[0], sum), to[2] = _mm512_add_ps(sum, u[3]);
  to[1] = half(_mm512_sub_ps(u[1], u[2]));
}

void weights_of_row(const WinogradWeightArgs& a, int64_t r) {
  const int64_t in = a.tiles.width, stride = a.w.rows * a.tiles.stride;
  const bf16* const from = a.w.row<bf16>(r);
  bf16* const to = a.tiles.row<bf16>(r);
  for_channels(in, [&](int64_t c, auto lanes) {
    __m512 rows[3][4], columns[4];
    for (int i = 0; i < 3; ++i) {
      const bf16* const g = from + 3 * i * in + c;
      times_g(lanes.load(g), lanes.load(g + in), lanes.load(g + 2 * in), rows[i]);
    }
    for (int j = 0; j < 4; ++j) {
      times_g(rows[0][j], rows[1][j], rows[2][j], columns);
      for (int i = 0; i < 4; ++i) lanes.store(columns[i], to + (4 * i + j) * stride + c);
    }
  });
}

void weights_backward_of_row(const WinogradWeightArgs& a, int64_t r) {
  const int64_t in = a.tiles.width, stride = a.w.rows * a.tiles.stride;
  const float* const from = a.tiles.row<float>(r);
  float* const to = a.w.row<float>(r);
  for_channels(in, [&](int64_t c, auto lanes) {
    __m512 rows[4][3], u[4], g[3];
    for (int i = 0; i < 4; ++i) {
      for (int j = 0; j < 4; ++j) u[j] = lanes.load(from + (4 * i + j) * stride + c);
      times_g_transposed(u, rows[i]);
    }
    for (int j = 0; j < 3; ++j) {
      for (int i = 0; i < 4; ++i) u[i] = rows[i][j];
      times_g_transposed(u, g);
      for (int i = 0; i < 3; ++i) lanes.store(g[i], to + (3 * i + j) * in + c);
    }
  });
}

void winograd_inputs(const WinogradArgs& a) {
  for_lines(a, false, [&](const TileLine& line) { inputs_of_line(a, line); });
}
void winograd_outputs(const WinogradArgs& a) {
  for_lines(a, true, [&](const TileLine& line) { outputs_of_line(a, line); });
}
void winograd_outputs_backward(const WinogradArgs& a) {
  for_lines(a, true, [&](const TileLine& line) { outputs_backward_of_line(a, line); });
}
void winograd_weights(const WinogradWeightArgs& a) {
  parallel_blocks(a.w.rows, 8, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) weights_of_row(a, r);
  });
}
void winograd_weights_backward(const WinogradWeightArgs& a) {
  parallel_blocks(a.w.rows, 8, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) weights_backward_of_row(a, r);
  });
}

}  // namespace
}  // namespace heddle::cpu

#pragma GCC pop_options
#endif

namespace heddle {

// 2 cores of Zen 5, forward: 64 to 64 channels 863 -> 1,010 to 1,070 GFLOP/s of the plain product,
// 128 to 128 854 -> 1,400, 256 to 256 906 -> 1,670. With AMX only the gradients are faster: its
// products take windows as they lie, at up to 2,600.
bool winograd_is_faster(int64_t in, int64_t out, bool trains) {
  if (matrix_unit() == MatrixUnit::amx && !trains) return false;
  return has_bf16_instructions() && std::min(in, out) >= 64;
}

WinogradKernels WinogradKernels::of_cpu() {
#if defined(__x86_64__)
  if (has_bf16_instructions()) {
    return {cpu::winograd_inputs, cpu::winograd_outputs, cpu::winograd_outputs_backward,
            cpu::winograd_weights, cpu::winograd_weights_backward};
  }
#endif
  return {};
}

}  // namespace heddle
