// Kernels of rows of a table by number.
#pragma once

#include <cstring>

#include "heddle/kernels/dropout.h"
#include "heddle/kernels/family.h"

namespace heddle {

/// embedding: of the tables only the rows that are asked for
inline Work work_of(const Rows& table, const int32_t*, float, const Rows& positions, const int32_t*,
                    const Dropout&, const Rows& y) {
  const int64_t read = row_bytes(table) + (positions.data == nullptr ? 0 : row_bytes(positions));
  return {y.rows * read + bytes_of(y), 0};
}
/// embedding_backward: reads dy, adds to as many rows
inline Work work_of(const Rows& dy, const int32_t*, float, const Dropout&, const Rows& dtable) {
  return {bytes_of(dy) + 2 * dy.rows * row_bytes(dtable), 0};
}
/// gather_rows
inline Work work_of(const Rows&, const int32_t*, const Rows& y) { return {2 * bytes_of(y), 0}; }

namespace definition {

inline void embedding(Rows table, const int32_t* ids, float scale, Rows positions,
                      const int32_t* position_ids, const Dropout& dropout, Rows y) {
  fill_elements(y, [&](int64_t r, int64_t c) {
    double v = element(table, ids[r], c);
    if (y.dtype == DType::bf16) v = static_cast<float>(bf16(static_cast<float>(v)));
    v *= scale;
    if (positions.data) v += element(positions, position_ids[r], c);
    return v * dropout.factor(r, c);
  });
}
inline void embedding_backward(Rows dy, const int32_t* ids, float scale, const Dropout& dropout,
                               Rows dtable) {
  for (int64_t r = 0; r < dy.rows; ++r) {
    for (int64_t c = 0; c < dy.width; ++c) {
      dtable.row<float>(ids[r])[c] +=
          static_cast<float>(element(dy, r, c)) * dropout.factor(r, c) * scale;
    }
  }
}
inline void gather_rows(Rows x, const int32_t* index, Rows y) {
  const auto size = static_cast<size_t>(size_of(x.dtype));
  for (int64_t r = 0; r < y.rows; ++r) {
    if (index[r] < 0) {
      std::memset(static_cast<char*>(y.data) + r * y.stride * size_of(y.dtype), 0,
                  static_cast<size_t>(row_bytes(y)));
      continue;
    }
    if (x.dtype == y.dtype) {  // any dtype
      std::memcpy(
          static_cast<char*>(y.data) + static_cast<size_t>(r * y.stride) * size,
          static_cast<const char*>(x.data) + static_cast<size_t>(index[r] * x.stride) * size,
          static_cast<size_t>(y.width) * size);
      continue;
    }
    for (int64_t c = 0; c < y.width; ++c) set_element(y, r, c, element(x, index[r], c));
  }
}

}  // namespace definition

struct EmbeddingKernels {
  /// y[r] = table[ids[r]] * scale + positions[position_ids[r]] (if given), then dropout; a table of
  /// f32 counts as rounded to the dtype of y
  void (*embedding)(Rows table, const int32_t* ids, float scale, Rows positions,
                    const int32_t* position_ids, const Dropout&, Rows y);
  /// dtable[ids[r]] += scale * mask(dy[r]), f32, rows in order for each id
  void (*embedding_backward)(Rows dy, const int32_t* ids, float scale, const Dropout&, Rows dtable);
  /// y[i] = x[index[i]]; zeros where the index is below 0
  void (*gather_rows)(Rows x, const int32_t* index, Rows y);

  static EmbeddingKernels of_cpu();
  static void list(const auto& visit) {
    HEDDLE_LIST_KERNEL(EmbeddingKernels, embedding);
    HEDDLE_LIST_KERNEL(EmbeddingKernels, embedding_backward);
    HEDDLE_LIST_KERNEL(EmbeddingKernels, gather_rows);
  }
};

}  // namespace heddle
