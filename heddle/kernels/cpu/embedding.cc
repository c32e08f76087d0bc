// Rows of a table by number: embedding, its gradient, and gathering.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heddle/kernels/cpu/embedding.cc"
#include <algorithm>
#include <cstring>

#include "heddle/base/parallel.h"
#include "heddle/kernels/cpu/scratch.h"
#include "heddle/kernels/cpu/targets.h"
#include "heddle/kernels/embedding.h"
#include "hwy/foreach_target.h"
// after foreach_target.h
#include "heddle/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heddle::cpu::HWY_NAMESPACE {
namespace {

// to += scale * mask(dy[r])
template <class T>
HWY_INLINE void add_gradient(const Rows& dy, int64_t r, float scale, const Dropout& dropout,
                             float* to) {
  const T* from = dy.row<T>(r);
  const Vec scale_v = splat(scale);
  DropoutRow mask(dropout, r);
  for_columns(dy.width, [&](int64_t c, auto part) HWY_ATTR {
    const Vec d = mask.apply(load(from + c, part), c);
    store(hn::MulAdd(d, scale_v, load(to + c, part)), to + c, part);
  });
}

// Rows are short: the call of memcpy takes longer than copying one. What does not fill a vector is
// copied again from the end. from: null for zeros
HWY_INLINE void copy_row(const uint8_t* HWY_RESTRICT from, int64_t n, uint8_t* HWY_RESTRICT to) {
  const hn::CappedTag<uint8_t, 64> d;
  const auto step = static_cast<int64_t>(hn::Lanes(d));
  if (from == nullptr) {
    std::memset(to, 0, static_cast<size_t>(n));
    return;
  }
  if (n < step) {
    std::memcpy(to, from, static_cast<size_t>(n));
    return;
  }
  for (int64_t i = 0; i + step <= n; i += step) hn::StoreU(hn::LoadU(d, from + i), d, to + i);
  if (n % step != 0) hn::StoreU(hn::LoadU(d, from + n - step), d, to + n - step);
}

// Rows of any one dtype.
void gather_bytes(const Rows& x, const int32_t* index, const Rows& y) {
  const int64_t size = size_of(y.dtype), bytes = y.width * size;
  const auto* const from = static_cast<const uint8_t*>(x.data);
  auto* const to = static_cast<uint8_t*>(y.data);
  parallel_blocks(y.rows, rows_per_block(bytes), [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t r = begin; r < end; ++r) {
      const uint8_t* const row = index[r] < 0 ? nullptr : from + index[r] * x.stride * size;
      copy_row(row, bytes, to + r * y.stride * size);
    }
  });
}

}  // namespace

void embedding_impl(Rows table, const int32_t* ids, float scale, Rows positions,
                    const int32_t* position_ids, const Dropout& dropout, Rows y) {
  for_each_row(
      [&]<class T>(int64_t r) HWY_ATTR {
        const auto from = at<T>(table, ids[r]);
        const auto added = at<T>(positions, positions.data ? position_ids[r] : 0);
        const auto to = at<T>(y, r);
        const Vec scale_v = splat(scale);
        DropoutRow mask(dropout, r);
        for_columns(y.width, [&](int64_t c, auto part) HWY_ATTR {
          Vec v = hn::Mul(round_to(load(offset(from, c), part), to), scale_v);
          if (positions.data) v = hn::Add(v, load(offset(added, c), part));
          store(mask.apply(v, c), offset(to, c), part);
        });
      },
      y, table, positions);
}

// Counting sort of the rows by id, stable; then blocks of ids, each id's rows in order.
void embedding_backward_impl(Rows dy, const int32_t* ids, float scale, const Dropout& dropout,
                             Rows dtable) {
  check(dtable.dtype == DType::f32, ErrorKind::device,
        "embedding_backward: the gradient of the table is {}; it must be f32",
        dtype_name(dtable.dtype));
  int32_t* end_of_id = scratch<int32_t, 0>(dtable.rows + 1);
  int32_t* sorted = scratch<int32_t, 1>(dy.rows);
  std::fill_n(end_of_id, dtable.rows + 1, 0);
  for (int64_t r = 0; r < dy.rows; ++r) ++end_of_id[ids[r] + 1];
  for (int64_t i = 0; i < dtable.rows; ++i) end_of_id[i + 1] += end_of_id[i];
  for (int64_t r = 0; r < dy.rows; ++r) sorted[end_of_id[ids[r]]++] = static_cast<int32_t>(r);
  const auto continues = [&](int64_t i) {
    return i > 0 && i < dy.rows && ids[sorted[i]] == ids[sorted[i - 1]];
  };
  // A block of the sorted rows does the ids whose first row it holds, to their last row.
  visit_float(dy.dtype, [&]<class T>() {
    parallel_blocks(dy.rows, rows_per_block(dy.width * 8), [&](int64_t begin, int64_t end) {
      int64_t i = begin;
      while (i < end && continues(i)) ++i;
      if (i == end) return;
      for (; i < end || continues(i); ++i) {
        add_gradient<T>(dy, sorted[i], scale, dropout, dtable.row<float>(ids[sorted[i]]));
      }
    });
  });
}

void gather_rows_impl(Rows x, const int32_t* index, Rows y) {
  if (x.dtype == y.dtype) return gather_bytes(x, index, y);
  for_each_row(
      [&]<class T>(int64_t r) HWY_ATTR {
        const bool is_there = index[r] >= 0;
        const auto from = at<T>(x, is_there ? index[r] : 0);
        const auto to = at<T>(y, r);
        for_columns(y.width, [&](int64_t c, auto part) HWY_ATTR {
          store(is_there ? load(offset(from, c), part) : zero(), offset(to, c), part);
        });
      },
      y, x);
}

}  // namespace heddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heddle::cpu {
HWY_EXPORT(embedding_impl);
HWY_EXPORT(embedding_backward_impl);
HWY_EXPORT(gather_rows_impl);
}  // namespace heddle::cpu

namespace heddle {

EmbeddingKernels EmbeddingKernels::of_cpu() {
  return {HEDDLE_CPU_KERNEL(embedding), HEDDLE_CPU_KERNEL(embedding_backward),
          HEDDLE_CPU_KERNEL(gather_rows)};
}

}  // namespace heddle
#endif
