// Matrix products in f32: rows of a, one broadcast element at a time, times two vectors of a panel.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heddle/kernels/cpu/gemm/gemm_f32.cc"
#include "heddle/kernels/cpu/targets.h"
#include "hwy/foreach_target.h"
//
#include "heddle/kernels/cpu/gemm/gemm_block.h"
#include "heddle/kernels/cpu/matrix_unit.h"
#include "heddle/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heddle::cpu::HWY_NAMESPACE {
namespace {

// Sums in registers: 12 x 2 vectors of 32 registers, or 6 x 2 of 16.
#if HWY_TARGET <= HWY_AVX3
constexpr int kMostRows = 12;
#else
constexpr int kMostRows = 6;
#endif

using F32Block = hn::CappedTag<float, 4>;

// lanes() rows of four values from `from` on: 128-bit block j of the result holds those of row
// first + 4 j.
HWY_INLINE Vec blocks_of_rows(const float* from, int64_t stride) {
  const F32Block d;
  const auto block = [&](int64_t j) HWY_ATTR { return hn::LoadU(d, from + 4 * j * stride); };
#if HWY_TARGET <= HWY_AVX3
  const hn::CappedTag<float, 8> half;
  return hn::Combine(F32(), hn::Combine(half, block(3), block(2)),
                     hn::Combine(half, block(1), block(0)));
#elif HWY_TARGET <= HWY_AVX2
  return hn::Combine(F32(), block(1), block(0));
#else
  return block(0);
#endif
}

// Four columns of lanes() rows, each as one vector, into rows of the panel.
HWY_INLINE void turn_four_columns(const float* from, int64_t stride, float* to, int64_t to_stride) {
  const F32 d;
  const Vec a = blocks_of_rows(from, stride), b = blocks_of_rows(from + stride, stride);
  const Vec c = blocks_of_rows(from + 2 * stride, stride);
  const Vec e = blocks_of_rows(from + 3 * stride, stride);
  const Vec low0 = hn::InterleaveLower(d, a, c), low1 = hn::InterleaveLower(d, b, e);
  const Vec high0 = hn::InterleaveUpper(d, a, c), high1 = hn::InterleaveUpper(d, b, e);
  hn::StoreU(hn::InterleaveLower(d, low0, low1), d, to);
  hn::StoreU(hn::InterleaveUpper(d, low0, low1), d, to + to_stride);
  hn::StoreU(hn::InterleaveLower(d, high0, high1), d, to + 2 * to_stride);
  hn::StoreU(hn::InterleaveUpper(d, high0, high1), d, to + 3 * to_stride);
}

// Rows of b become columns of the panel, a strip of the inner dimension at a time by way of the
// cache: rows of weights are often 4 KB apart, where a cache keeps 12 lines only.
// Values of T count as rounded to As.
template <class T, class As>
void pack_transposed_b(const Rows& b, float* panel) {
  constexpr int64_t kStrip = 64, kStride = kStrip + 4;
  const int64_t n = 2 * lanes(), count = std::min(n, b.rows);
  HWY_ALIGN float strip[32 * kStride];
  if (count < n) std::memset(strip, 0, sizeof strip);
  for (int64_t l = 0; l < b.width; l += kStrip, panel += kStrip * n) {
    const int64_t width = std::min(kStrip, b.width - l);
    for (int64_t c = 0; c < count; ++c) {
      const T* from = b.row<T>(c) + l;
      float* to = strip + c * kStride;
      for_columns(width, [&](int64_t i, auto part) HWY_ATTR {
        store(round_to(load(from + i, part), static_cast<const As*>(nullptr)), to + i, part);
      });
    }
    int64_t i = 0;
    for (; i + 4 <= width; i += 4) {
      for (int64_t c = 0; c < n; c += lanes()) {
        turn_four_columns(strip + c * kStride + i, kStride, panel + i * n + c, n);
      }
    }
    for (; i < width; ++i) {
      for (int64_t c = 0; c < n; ++c) panel[i * n + c] = strip[c * kStride + i];
    }
  }
}

template <class T, class As>
void pack_as(const Rows& b, bool transposed, void* to) {
  auto* const panel = static_cast<float*>(to);
  if (transposed) return pack_transposed_b<T, As>(b, panel);
  const int64_t n = 2 * lanes(), count = std::min(n, b.width);
  if (count < n) std::memset(panel, 0, static_cast<size_t>(b.rows * n) * sizeof(float));
  for (int64_t l = 0; l < b.rows; ++l) {
    const T* from = b.row<T>(l);
    for_columns(count, [&](int64_t c, auto part) HWY_ATTR {
      store(round_to(load(from + c, part), static_cast<const As*>(nullptr)), panel + l * n + c,
            part);
    });
  }
}

// As: what values of b count as.
template <class As>
void pack(const Rows& b, bool transposed, void* panel) {
  visit_float(b.dtype, [&]<class T>() {
    pack_as<T, std::conditional_t<std::is_same_v<T, bf16>, float, As>>(b, transposed, panel);
  });
}

template <class First, class Second>
struct Columns {
  First first;
  Second second;
};

// Products of so few rows wait for weights: these are fetched so many elements ahead, further than
// the processor looks alone (10 and 13 GB/s a thread on a Xeon of 2023, 2026-11).
constexpr int kFewRows = 3;
constexpr int64_t kAhead = 2048;

// kRows rows of c: sums of products, added to c if wanted, bias, store. Sums start from zero and
// not from c: shorter chains round less. The second vector of a narrow panel may have no column in
// c.
template <int kRows, bool kPacked, class T, class First, class Second>
HWY_NOINLINE void some_rows_times_panel(const float* a, int64_t stride, const float* b,
                                        int64_t inner, T* c, int64_t c_stride,
                                        Columns<First, Second> columns, bool has_second,
                                        const float* bias, bool accumulate) {
  const int64_t n = lanes();
  Vec sum[kRows][2];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) sum[r][0] = sum[r][1] = zero();
  for (int64_t l = 0; l < inner; ++l) {
    const Vec b0 = hn::LoadU(F32(), b), b1 = hn::LoadU(F32(), b + n);
    if constexpr (kRows <= kFewRows) {
      __builtin_prefetch(b + kAhead);
      __builtin_prefetch(b + kAhead + n);
    }
    b += 2 * n;
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const Vec x = splat(kPacked ? a[r] : a[r * stride]);
      sum[r][0] = hn::MulAdd(x, b0, sum[r][0]);
      sum[r][1] = hn::MulAdd(x, b1, sum[r][1]);
    }
    a += kPacked ? kMostRows : 1;
  }
  const Vec bias0 = bias == nullptr ? zero() : load(bias, columns.first);
  const Vec bias1 = bias == nullptr || !has_second ? zero() : load(bias + n, columns.second);
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    if (accumulate) {
      const T* start = c + r * c_stride;
      sum[r][0] = hn::Add(load(start, columns.first), sum[r][0]);
      if (has_second) sum[r][1] = hn::Add(load(start + n, columns.second), sum[r][1]);
    }
    store(hn::Add(sum[r][0], bias0), c + r * c_stride, columns.first);
    if (has_second) store(hn::Add(sum[r][1], bias1), c + r * c_stride + n, columns.second);
  }
}

template <bool kPacked, class T, class First, class Second>
void rows_times_panel(const GemmBlock& g, const float* b, T* c, Columns<First, Second> columns,
                      bool has_second, const float* bias) {
  for (int64_t row = 0; row < g.c.rows;) {
    const auto* a = kPacked ? reinterpret_cast<const float*>(static_cast<const char*>(g.a) +
                                                             row / kMostRows * g.group_bytes)
                            : static_cast<const float*>(g.a) + row * g.a_stride;
    const int64_t left = g.c.rows - row;
    const auto run = [&]<int kRows>(int64_t from) HWY_ATTR {
      some_rows_times_panel<kRows, kPacked>(kPacked ? a + from : a + from * g.a_stride, g.a_stride,
                                            b, g.inner, c + (row + from) * g.c.stride, g.c.stride,
                                            columns, has_second, bias, g.accumulate);
    };
    if (left >= kMostRows) {
      run.template operator()<kMostRows>(0);
      row += kMostRows;
      continue;
    }
    int64_t from = 0;
    for (; left - from >= 6; from += 6) run.template operator()<6>(from);
    for (; left - from >= 3; from += 3) run.template operator()<3>(from);
    for (; left - from >= 1; from += 1) run.template operator()<1>(from);
    break;
  }
}

template <bool kPacked, class T>
void block_as(const GemmBlock& g) {
  const int64_t n = lanes();
  for (int64_t column = 0; column < g.c.width; column += 2 * n) {
    const auto* b = reinterpret_cast<const float*>(static_cast<const char*>(g.b) +
                                                   column / (2 * n) * g.panel_bytes);
    T* c = g.c.row<T>(0) + column;
    const float* bias = g.bias == nullptr ? nullptr : g.bias + column;
    const int64_t left = g.c.width - column;
    if (left >= 2 * n) {
      rows_times_panel<kPacked>(g, b, c, Columns<Full, Full>{}, true, bias);
    } else if (left > n) {
      rows_times_panel<kPacked>(g, b, c, Columns<Full, Tail>{{}, {left - n}}, true, bias);
    } else if (left == n) {
      rows_times_panel<kPacked>(g, b, c, Columns<Full, Full>{}, false, bias);
    } else {
      rows_times_panel<kPacked>(g, b, c, Columns<Tail, Full>{{left}, {}}, false, bias);
    }
  }
}

void block(const GemmBlock& g) {
  visit_float(g.c.dtype,
              [&]<class T>() { g.group_bytes > 0 ? block_as<true, T>(g) : block_as<false, T>(g); });
}

void pack_transposed(const Rows& a, int64_t group_bytes, void* packed) {
  auto* group = static_cast<char*>(packed);
  visit_float(a.dtype, [&]<class T>() HWY_ATTR {
    for (int64_t m = 0; m < a.width; m += kMostRows, group += group_bytes) {
      const int64_t count = std::min<int64_t>(kMostRows, a.width - m);
      auto* to = reinterpret_cast<float*>(group);
      for (int64_t l = 0; l < a.rows; ++l) {
        const T* from = a.row<T>(l) + m;
        for (int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(from[i]);
        to += kMostRows;
      }
    }
  });
}

template <class As>
GemmCode code() {
  return {.columns = 2 * lanes(),
          .inner_step = 1,
          .inner_chunk = 256,
          .block_rows = 240,
          .group_rows = kMostRows,
          .packed = DType::f32,
          .pack = pack<As>,
          .pack_transposed = pack_transposed,
          .block = block};
}

}  // namespace

const GemmCode& gemm_f32_code() {
#if HWY_TARGET == HWY_AVX3
  static const GemmCode the_code = is_of_amd() ? code<float>() : gemm_avx512_f32(code<float>());
#else
  static const GemmCode the_code = code<float>();
#endif
  return the_code;
}
const GemmCode& gemm_f32_rounding_code() {
  static const GemmCode the_code = code<bf16>();
  return the_code;
}

}  // namespace heddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heddle::cpu {

HWY_EXPORT(gemm_f32_code);
HWY_EXPORT(gemm_f32_rounding_code);
const GemmCode& gemm_f32() { return HWY_DYNAMIC_DISPATCH(gemm_f32_code)(); }
const GemmCode& gemm_f32_rounding() { return HWY_DYNAMIC_DISPATCH(gemm_f32_rounding_code)(); }

}  // namespace heddle::cpu
#endif
