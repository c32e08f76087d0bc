// Bytes and floating-point operations of a kernel call, from its arguments.
#pragma once

#include "heddle/base/profile.h"
#include "heddle/kernels/kernels.h"

namespace heddle {

// Bytes are those of the rows that go in and out, each once: what has to move if nothing stays in
// cache. Vectors of a row's width (biases, ids, means) are left out.

inline int64_t bytes_of(const Rows& x) {
  return x.data == nullptr ? 0 : x.rows * x.width * static_cast<int64_t>(size_of(x.dtype));
}
template <class T>
int64_t bytes_of(const T&) {
  return 0;
}

/// All row views among the arguments: right for a kernel that reads or writes each once; 0 for
/// structs of arguments that have no overload below.
template <class... Args>
Work work_of(const Args&... args) {
  return {(int64_t{0} + ... + bytes_of(args)), 0};
}

Work work_of(const GemmArgs& args);
Work work_of(const NormArgs& args);
Work work_of(const NormBackwardArgs& args);
Work work_of(const AttentionArgs& args);          ///< 2 products of queries and visible keys
Work work_of(const AttentionBackwardArgs& args);  ///< 5 products, one of them again
Work work_of(const CrossEntropyArgs& args);
Work work_of(const AdamArgs& args);
/// axpby
inline Work work_of(float, const Rows& x, float beta, const Rows& y) {
  return {bytes_of(x) + (beta == 0 ? 1 : 2) * bytes_of(y), 0};
}
/// sum_squares
inline Work work_of(const float*, int64_t n) { return {n * 4, 0}; }
/// embedding: of the tables only the rows that are asked for
Work work_of(const Rows& table, const int32_t* ids, float scale, const Rows& positions,
             const int32_t* position_ids, const Dropout& dropout, const Rows& y);
/// embedding_backward: reads dy, adds to as many rows
Work work_of(const Rows& dy, const int32_t* ids, float scale, const Dropout& dropout,
             const Rows& dtable);
/// gather_rows
inline Work work_of(const Rows&, const int32_t*, const Rows& y) { return {2 * bytes_of(y), 0}; }

}  // namespace heddle
