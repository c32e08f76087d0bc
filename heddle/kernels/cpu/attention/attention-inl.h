// Attention by tiles: packing of rows, small products and weights, shared by forward and backward.
// All sums run in an order that depends on nothing but the query's own segment: products add over
// the inner index one by one, weights add over vectors of a tile that starts at the segment's
// start.
#if defined(HEDDLE_KERNELS_CPU_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEDDLE_KERNELS_CPU_ATTENTION_INL_H_
#undef HEDDLE_KERNELS_CPU_ATTENTION_INL_H_
#else
#define HEDDLE_KERNELS_CPU_ATTENTION_INL_H_
#endif

#include <algorithm>
#include <limits>
#include <utility>

#include "heddle/kernels/cpu/attention/attention_plan.h"
#include "heddle/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heddle::cpu::HWY_NAMESPACE {

inline constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(F32()));

/// Columns of a tile are handled 16 at a time, whatever the length of a vector.
inline int64_t padded16(int64_t n) { return (n + 15) & ~int64_t{15}; }

// ---------------------------------------------------------------- from rows to tiles and back

/// Rows of one head: row i of the view is x.row(index ? index[i] : first + i), columns from column.
struct RowSource {
  const Rows& x;
  int64_t column;
  int64_t first;
  const int32_t* index = nullptr;

  template <class T>
  const T* row(int64_t i) const {
    return x.row<T>(index ? index[i] : first + i) + column;
  }
};

template <class T>
void pack_rows_of(const RowSource& source, int64_t count, int64_t width, float factor,
                  int64_t stride, float* HWY_RESTRICT out) {
  const Vec f = splat(factor);
  for (int64_t i = 0; i < count; ++i) {
    const T* in = source.row<T>(i);
    float* to = out + i * stride;
    for_columns(width, [&](int64_t c, auto part)
                           HWY_ATTR { hn::Store(hn::Mul(load(in + c, part), f), F32(), to + c); });
  }
}

/// out[i * stride + c] = factor * source(i, c).
inline void pack_rows(const RowSource& source, int64_t count, int64_t width, float factor,
                      int64_t stride, float* out) {
  if (source.x.dtype == DType::bf16) {
    return pack_rows_of<bf16>(source, count, width, factor, stride, out);
  }
  pack_rows_of<float>(source, count, width, factor, stride, out);
}

// The 128-bit parts of v go to memory, `distance` apart.
template <class D>
HWY_INLINE void store_parts(D d, hn::Vec<D> v, int64_t distance, float* HWY_RESTRICT to) {
  if constexpr (hn::MaxLanes(D()) == 8) {
    const hn::Half<D> half;
    hn::Store(hn::LowerHalf(half, v), half, to);
    hn::Store(hn::UpperHalf(half, v), half, to + distance);
  } else {
    hn::Store(v, d, to);
  }
}

// Transposes 4x4 blocks inside the 128-bit parts of four vectors.
template <class D>
HWY_INLINE void transpose_parts(D d, hn::Vec<D>* HWY_RESTRICT x) {
  const hn::Repartition<uint64_t, D> d64;
  const auto ab0 = hn::BitCast(d64, hn::InterleaveLower(d, x[0], x[1]));
  const auto ab1 = hn::BitCast(d64, hn::InterleaveUpper(d, x[0], x[1]));
  const auto cd0 = hn::BitCast(d64, hn::InterleaveLower(d, x[2], x[3]));
  const auto cd1 = hn::BitCast(d64, hn::InterleaveUpper(d, x[2], x[3]));
  x[0] = hn::BitCast(d, hn::InterleaveLower(d64, ab0, cd0));
  x[1] = hn::BitCast(d, hn::InterleaveUpper(d64, ab0, cd0));
  x[2] = hn::BitCast(d, hn::InterleaveLower(d64, ab1, cd1));
  x[3] = hn::BitCast(d, hn::InterleaveUpper(d64, ab1, cd1));
}

// Whole vectors of four rows become columns i .. i + 3; returns how many elements of a row that
// was.
HWY_INLINE int64_t transpose_four(const float* const* rows, int64_t width, float factor,
                                  int64_t stride, float* HWY_RESTRICT to) {
  const hn::CappedTag<float, 8> d;
  constexpr auto kWidth = static_cast<int64_t>(hn::MaxLanes(d));
  int64_t c = 0;
  for (; c + kWidth <= width; c += kWidth) {
    hn::Vec<decltype(d)> x[4] = {hn::LoadU(d, rows[0] + c), hn::LoadU(d, rows[1] + c),
                                 hn::LoadU(d, rows[2] + c), hn::LoadU(d, rows[3] + c)};
    transpose_parts(d, x);
    for (int64_t j = 0; j < 4; ++j) {
      store_parts(d, hn::Mul(x[j], hn::Set(d, factor)), 4 * stride, to + (c + j) * stride);
    }
  }
  return c;
}
// Two neighbours of bf16 travel as one 32-bit value and part at the end.
HWY_INLINE int64_t transpose_four(const bf16* const* rows, int64_t width, float factor,
                                  int64_t stride, float* HWY_RESTRICT to) {
  const hn::CappedTag<float, 8> d;
  const hn::Rebind<uint32_t, decltype(d)> du;
  constexpr auto kWidth = static_cast<int64_t>(2 * hn::MaxLanes(d));
  const auto pairs = [&](int64_t row, int64_t c) HWY_ATTR {
    return hn::LoadU(du, reinterpret_cast<const uint32_t*>(rows[row] + c));
  };
  const auto upper = hn::Set(du, 0xffff0000u);
  const auto f = hn::Set(d, factor);
  int64_t c = 0;
  for (; c + kWidth <= width; c += kWidth) {
    hn::Vec<decltype(du)> x[4] = {pairs(0, c), pairs(1, c), pairs(2, c), pairs(3, c)};
    transpose_parts(du, x);
    for (int64_t j = 0; j < 4; ++j) {
      const auto even = hn::BitCast(d, hn::ShiftLeft<16>(x[j]));
      const auto odd = hn::BitCast(d, hn::And(x[j], upper));
      store_parts(d, hn::Mul(even, f), 8 * stride, to + (c + 2 * j) * stride);
      store_parts(d, hn::Mul(odd, f), 8 * stride, to + (c + 2 * j + 1) * stride);
    }
  }
  return c;
}

template <class T>
void pack_columns_of(const RowSource& source, int64_t count, int64_t width, float factor,
                     int64_t stride, float* out) {
  for (int64_t i = 0; i < count; i += 4) {
    const T* rows[4];
    for (int64_t j = 0; j < 4; ++j) rows[j] = source.row<T>(std::min(i + j, count - 1));
    for (int64_t c = transpose_four(rows, width, factor, stride, out + i); c < width; ++c) {
      for (int64_t j = 0; j < 4; ++j) {
        out[c * stride + i + j] = static_cast<float>(rows[j][c]) * factor;
      }
    }
  }
}

/// out[c * stride + i] = factor * source(i, c) for i < count; up to three further i are written.
inline void pack_columns(const RowSource& source, int64_t count, int64_t width, float factor,
                         int64_t stride, float* out) {
  if (source.x.dtype == DType::bf16) {
    return pack_columns_of<bf16>(source, count, width, factor, stride, out);
  }
  pack_columns_of<float>(source, count, width, factor, stride, out);
}

template <class T>
void store_row_of(const float* from, float factor, int64_t width, T* to) {
  // Adding zero turns -0 into +0, so that a masked key (+ 0 * v) cannot be told from an absent one.
  for_columns(width, [&](int64_t c, auto part) HWY_ATTR {
    store(hn::MulAdd(hn::Load(F32(), from + c), splat(factor), zero()), to + c, part);
  });
}

/// Row `row` of x, columns from `column`: = factor * from.
inline void store_row(const float* from, float factor, const Rows& x, int64_t row, int64_t column,
                      int64_t width) {
  if (x.dtype == DType::bf16) return store_row_of(from, factor, width, x.row<bf16>(row) + column);
  store_row_of(from, factor, width, x.row<float>(row) + column);
}

// ---------------------------------------------------------------- products

/// c[i, j] (+)= sum over k = 0 .. steps - 1 in this order of a[i * a_row + k * a_step] * b[k, j].
struct Product {
  const float* a;
  int64_t a_row, a_step;
  const float* b;
  int64_t b_stride;
  float* c;
  int64_t c_stride;
  int64_t rows;
  int64_t columns;  ///< rounded up to whole vectors
  int64_t steps;
  bool accumulate;
};

// Element I of the block is vector I % kVectors of row I / kVectors: folds instead of loops, so
// that GCC keeps all sums in registers.
template <int64_t kVectors, size_t... I, size_t... J>
HWY_INLINE void product_of(const Product& p, int64_t row, int64_t column, std::index_sequence<I...>,
                           std::index_sequence<J...>) {
  const F32 d;
  constexpr auto kRow = [](size_t i) { return static_cast<int64_t>(i) / kVectors; };
  constexpr auto kColumn = [](size_t i) { return static_cast<int64_t>(i) % kVectors * kLanes; };
  const int64_t c_stride = p.c_stride, a_row = p.a_row, a_step = p.a_step, b_stride = p.b_stride;
  float* HWY_RESTRICT c = p.c + row * c_stride + column;
  const float* HWY_RESTRICT a = p.a + row * a_row;
  const float* HWY_RESTRICT b = p.b + column;
  Vec sum[sizeof...(I)];
  if (p.accumulate) {
    ((sum[I] = hn::Load(d, c + kRow(I) * c_stride + kColumn(I))), ...);
  } else {
    ((sum[I] = hn::Zero(d)), ...);
  }
  for (int64_t k = p.steps; k > 0; --k) {
    Vec right[kVectors];
    ((right[J] = hn::Load(d, b + kColumn(J))), ...);
    ((sum[I] = hn::MulAdd(hn::Set(d, a[kRow(I) * a_row]), right[I % kVectors], sum[I])), ...);
    a += a_step;
    b += b_stride;
  }
  (hn::Store(sum[I], d, c + kRow(I) * c_stride + kColumn(I)), ...);
}

template <int64_t kRows, int64_t kVectors>
HWY_NOINLINE void product_block(const Product& p, int64_t row, int64_t column) {
  product_of<kVectors>(p, row, column, std::make_index_sequence<kRows * kVectors>(),
                       std::make_index_sequence<kVectors>());
}

// Registers: 32 vectors with AVX-512, 16 without; two vectors wide, 4 or 8 rows keep both
// multiplication units busy. One or two rows go four vectors wide for the same reason.
inline constexpr int64_t kWideRows = kLanes == 16 ? 8 : 4;

template <int kVectors>
void product_rows(const Product& p, int64_t column) {
  constexpr int64_t kMost = kVectors == 4 ? 2 : kVectors == 2 ? kWideRows : 8;
  for (int64_t row = 0; row < p.rows;) {
    const int64_t rows = std::min(kMost, p.rows - row);
    switch (rows) {
      case 1: product_block<1, kVectors>(p, row, column); break;
      case 2: product_block<2, kVectors>(p, row, column); break;
      case 3: product_block<3, kVectors>(p, row, column); break;
      case 4: product_block<4, kVectors>(p, row, column); break;
      case 5: product_block<5, kVectors>(p, row, column); break;
      case 6: product_block<6, kVectors>(p, row, column); break;
      case 7: product_block<7, kVectors>(p, row, column); break;
      default: product_block<8, kVectors>(p, row, column); break;
    }
    row += rows;
  }
}

inline void product(const Product& p) {
  int64_t column = 0;
  if (p.rows <= 2) {
    for (; column + 3 * kLanes < p.columns; column += 4 * kLanes) product_rows<4>(p, column);
  }
  for (; column + kLanes < p.columns; column += 2 * kLanes) product_rows<2>(p, column);
  if (column < p.columns) product_rows<1>(p, column);
}

// ---------------------------------------------------------------- weights

HWY_INLINE Vec exp_weight(Vec x) { return exp_normal(x, -87.0f); }

// ---------------------------------------------------------------- ranges and biases

/// The range of orders that a query sees, for keys in the lanes.
struct RangeOf {
  hn::Vec<I32> first, limit;
  HWY_INLINE RangeOf(int32_t from, int32_t to)
      : first(hn::Set(I32(), from)), limit(hn::Set(I32(), to)) {}
  HWY_INLINE hn::Mask<F32> seen(const int32_t* orders) const {
    const auto order = hn::Load(I32(), orders);
    return hn::RebindMask(F32(), hn::AndNot(hn::Lt(order, first), hn::Lt(order, limit)));
  }
};

/// The ranges of queries [begin, end) of a segment, up to a whole vector more of the last one's.
inline void copy_ranges(const SegmentSizes& sizes, int64_t begin, int64_t end,
                        int32_t* HWY_RESTRICT first, int32_t* HWY_RESTRICT limit) {
  const I32 d;
  if (sizes.has_ranges()) {
    for (int64_t i = 0; i < padded16(end - begin); ++i) {
      const int64_t query = std::min(begin + i, end - 1);
      first[i] = sizes.first(query), limit[i] = sizes.limit(query);
    }
    return;
  }
  const auto keys = hn::Set(d, static_cast<int32_t>(sizes.keys));
  const auto last = hn::Set(d, sizes.limit(end - 1));
  const auto step = static_cast<int32_t>(begin + 1 + sizes.keys - sizes.queries);
  for (int64_t i = 0; i < padded16(end - begin); i += kLanes) {
    const auto grown = hn::Iota(d, step + static_cast<int32_t>(i));
    hn::Store(hn::Zero(d), d, first + i);
    hn::Store(sizes.causal ? hn::Min(hn::Max(grown, hn::Zero(d)), last) : keys, d, limit + i);
  }
}

/// What a head adds to scores; distance: position of the key - position of the query.
struct HeadBias {
  const float* values;  // [2 * reach + 1]
  int64_t reach;
  HeadBias(const AttentionArgs& args, int64_t head)
      : values(args.bias.values + head * (2 * args.bias.reach + 1)), reach(args.bias.reach) {}

  /// The index of lane 0's distance and of those of the lanes behind, each kStep further.
  template <int kStep>
  HWY_INLINE hn::Vec<I32> index(int64_t distance) const {
    const I32 d;
    const auto first = hn::Set(d, static_cast<int32_t>(distance + reach));
    const auto at = kStep > 0 ? hn::Add(first, hn::Iota(d, 0)) : hn::Sub(first, hn::Iota(d, 0));
    return hn::Min(hn::Max(at, hn::Zero(d)), hn::Set(d, static_cast<int32_t>(2 * reach)));
  }
  template <int kStep>
  HWY_INLINE Vec lanes(int64_t distance) const {
    return hn::GatherIndex(F32(), values, index<kStep>(distance));
  }
  /// to[c] += what the distance `distance + c` gives.
  void add_to_row(int64_t distance, int64_t columns, float* to) const {
    for (int64_t c = 0; c < columns; c += kLanes) {
      hn::Store(hn::Add(hn::Load(F32(), to + c), lanes<1>(distance + c)), F32(), to + c);
    }
  }
};

// ---------------------------------------------------------------- dropout

/// The lanes whose 16 bits (the lower half of the word for an even slot) are below the threshold.
template <class V>
HWY_INLINE hn::Mask<F32> dropped_lanes(VecU32 word, int64_t slot, V threshold) {
  const VecU32 u = slot % 2 ? hn::ShiftRight<16>(word) : hn::And(word, hn::Set(U32(), 0xffff));
  return hn::RebindMask(F32(), hn::Lt(hn::BitCast(I32(), u), threshold));
}

}  // namespace heddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEDDLE_KERNELS_CPU_ATTENTION_INL_H_
