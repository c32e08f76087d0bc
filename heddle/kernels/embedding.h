// Kernels of rows of a table by number.
#pragma once

#include "heddle/kernels/dropout.h"
#include "heddle/kernels/work.h"

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

struct EmbeddingKernels {
  /// y[r] = table[ids[r]] * scale + positions[position_ids[r]] (if given), then dropout; a table of
  /// f32 counts as rounded to the dtype of y
  void (*embedding)(Rows table, const int32_t* ids, float scale, Rows positions,
                    const int32_t* position_ids, const Dropout&, Rows y);
  /// dtable[ids[r]] += scale * mask(dy[r]), f32, rows in order for each id
  void (*embedding_backward)(Rows dy, const int32_t* ids, float scale, const Dropout&, Rows dtable);
  /// y[i] = x[index[i]]
  void (*gather_rows)(Rows x, const int32_t* index, Rows y);

  /// visit.operator()<&pointer>(name) for each.
  template <class Visit>
  static void list(const Visit& visit) {
    visit.template operator()<&EmbeddingKernels::embedding>("embedding");
    visit.template operator()<&EmbeddingKernels::embedding_backward>("embedding_backward");
    visit.template operator()<&EmbeddingKernels::gather_rows>("gather_rows");
  }
};

namespace cpu {
EmbeddingKernels embedding_kernels();
}

}  // namespace heddle
