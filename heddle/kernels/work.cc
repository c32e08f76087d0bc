// Bytes and floating-point operations of the kernels with arguments of their own.
#include "heddle/kernels/work.h"

#include <algorithm>

namespace heddle {
namespace {

int64_t row_bytes(const Rows& x) { return x.width * static_cast<int64_t>(size_of(x.dtype)); }

// Pairs of a query and a key that it sees, in all segments.
int64_t visible_pairs(const AttentionArgs& args) {
  int64_t pairs = 0;
  for (int64_t i = 0; i < args.segments; ++i) {
    const int64_t n = args.q_offsets[i + 1] - args.q_offsets[i];
    const int64_t m = args.k_offsets[i + 1] - args.k_offsets[i];
    const int64_t last = std::min(n, m);  // queries that see a key, if causal: m, m - 1, ..
    pairs += args.causal ? last * m - last * (last - 1) / 2 : n * m;
  }
  return pairs;
}

double product_flops(const AttentionArgs& args) {
  return 2.0 * static_cast<double>(visible_pairs(args)) *
         static_cast<double>(args.heads * args.head_dim);
}

}  // namespace

Work work_of(const GemmArgs& args) {
  const int64_t inner = args.transpose_a ? args.a.rows : args.a.width;
  const int64_t b = args.int8 ? args.b.rows * args.b.width : bytes_of(args.b);
  return {bytes_of(args.a) + b + (args.accumulate ? 2 : 1) * bytes_of(args.c),
          2.0 * static_cast<double>(args.c.rows) * static_cast<double>(args.c.width) *
              static_cast<double>(inner)};
}

Work work_of(const NormArgs& args) {
  return {bytes_of(args.x) + bytes_of(args.sub) + bytes_of(args.h) + bytes_of(args.y), 0};
}

Work work_of(const NormBackwardArgs& args) {
  return {bytes_of(args.h) + bytes_of(args.dy) + bytes_of(args.dh_in) + bytes_of(args.dh) +
              bytes_of(args.dsub),
          0};
}

Work work_of(const AttentionArgs& args) {
  const int64_t keys = args.key_rows == nullptr ? args.k.rows : args.k_offsets[args.segments];
  return {bytes_of(args.q) + bytes_of(args.o) + keys * (row_bytes(args.k) + row_bytes(args.v)),
          2 * product_flops(args)};
}

Work work_of(const AttentionBackwardArgs& args) {
  const AttentionArgs& f = args.forward;
  return {bytes_of(f.q) + bytes_of(f.k) + bytes_of(f.v) + bytes_of(f.o) + bytes_of(args.d_o) +
              bytes_of(args.dq) + bytes_of(args.dk) + bytes_of(args.dv),
          5 * product_flops(f)};
}

Work work_of(const CrossEntropyArgs& args) {
  return {bytes_of(args.logits) + bytes_of(args.dlogits), 0};
}

Work work_of(const AdamArgs& args) {
  const int64_t floats = 7 + (args.ema != nullptr ? 2 : 0);  // w, m, v twice, g once
  return {args.n * (4 * floats + (args.shadow != nullptr ? 2 : 0)), 0};
}

Work work_of(const Rows& table, const int32_t*, float, const Rows& positions, const int32_t*,
             const Dropout&, const Rows& y) {
  const int64_t read = row_bytes(table) + (positions.data == nullptr ? 0 : row_bytes(positions));
  return {y.rows * read + bytes_of(y), 0};
}

Work work_of(const Rows& dy, const int32_t*, float, const Dropout&, const Rows& dtable) {
  return {bytes_of(dy) + 2 * dy.rows * row_bytes(dtable), 0};
}

}  // namespace heddle
