// Relative attention: blocks of queries against all keys of their segment, by matrix products of
// the table of kernels. The scores of distances are a product with the rows of r that the block
// needs, whose columns are then shifted to the keys (Dai et al. 2019, appendix B).
#include "heddle/ops/relative_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "heddle/base/parallel.h"
#include "heddle/ops/elementwise.h"
#include "heddle/ops/embedding.h"
#include "heddle/ops/matmul.h"
#include "heddle/ops/reduce.h"
#include "heddle/ops/shape.h"

namespace heddle {
namespace {

constexpr float kUnseen = -std::numeric_limits<float>::infinity();
constexpr float kHidden = -1e30f;  // so far below any score that all hidden ones are alike

// A block has at most so many scores, and at most kMostQueries rows.
constexpr int64_t kBlockScores = 1 << 17;
constexpr int64_t kMostQueries = 128;

bool has_order(const RelativeRows& rows) { return !rows.visibility.is_all(); }

void check_rows(const char* what, size_t given, int64_t needed) {
  check(static_cast<int64_t>(given) == needed, ErrorKind::shape,
        "relative attention: {} {} for {} rows", given, what, needed);
}

void check_sizes(const RelativeInputs& x, const RelativeRows& rows, const RelativeOptions& o) {
  const int64_t n = x.content.size(0), m = x.k.size(0), width = x.content.size(1);
  check(o.heads >= 1 && width % o.heads == 0, ErrorKind::shape,
        "relative attention: the width {} is not divisible by {} heads", width, o.heads);
  check(x.distance.shape() == x.content.shape() && x.v.shape() == x.k.shape() &&
            x.k.size(1) == width && x.r.size(1) == width && x.r.size(0) > 0,
        ErrorKind::shape, "relative attention: q is {} and {}, k {}, v {}, r {}", x.content.shape(),
        x.distance.shape(), x.k.shape(), x.v.shape(), x.r.shape());
  check(rows.queries.count() == rows.keys.count() && rows.queries.rows() == n &&
            rows.keys.rows() == m,
        ErrorKind::shape,
        "relative attention: {} query segments of {} rows over {} key segments of {} rows; q is "
        "{}, k {}",
        rows.queries.count(), rows.queries.rows(), rows.keys.count(), rows.keys.rows(),
        x.content.shape(), x.k.shape());
  check_rows("query positions", rows.query_positions.size(), n);
  check_rows("key positions", rows.key_positions.size(), m);
  rows.visibility.check_sizes(n, m);
  if (has_order(rows)) check_rows("orders", rows.visibility.order.size(), m);
  if (x.types.defined()) {
    check(x.types.size(0) == n && x.types.size(1) == 2 * o.heads && x.types.dtype() == DType::f32,
          ErrorKind::shape, "relative attention: types are {} {}; [{}, {}] f32 is needed",
          x.types.shape(), dtype_name(x.types.dtype()), n, 2 * o.heads);
    check_rows("query types", rows.query_types.size(), n);
    check_rows("key types", rows.key_types.size(), m);
  }
  if (rows.hidden.empty()) return;
  int64_t pairs = 0;
  for (int64_t i = 0; i < rows.queries.count(); ++i) {
    pairs += rows.queries.length(i) * rows.keys.length(i);
  }
  check_rows("values of the mask", rows.hidden.size(), pairs);
}

// What a thread keeps for a block of queries.
struct ThreadMemory {
  std::vector<float> weights, far, used, back;
  std::vector<bf16> rounded;
};

ThreadMemory& thread_memory() {
  thread_local ThreadMemory memory;
  return memory;
}

template <class T>
Rows rows_in(std::vector<T>& memory, int64_t rows, int64_t width) {
  memory.resize(static_cast<size_t>(std::max<int64_t>(1, rows * width)));
  return {memory.data(), rows, width, width, dtype_of<T>};
}

// x in the dtype of products.
Rows as(const Rows& x, DType dtype, ThreadMemory& memory) {
  if (dtype == DType::f32) return x;
  const Rows y = rows_in(memory.rounded, x.rows, x.width);
  kernels().convert(x, y);
  return y;
}

// Queries of one head and segment, the keys that any of them could see, and the rows of r between.
struct QueryBlock {
  int64_t segment = 0, head = 0;
  int64_t q_first = 0, n = 0;
  int64_t k_first = 0, m = 0;
  int64_t r_first = 0, r_count = 0;
  bool is_run = false;              // the keys' positions count up one by one
  const uint8_t* hidden = nullptr;  // [n, m] if there is a mask
};

// One call, block by block.
class Call {
 public:
  Call(const RelativeInputs& x, const RelativeRows& rows, const RelativeOptions& o)
      : x_(x), rows_(rows), options_(o), d_(x.content.size(1) / o.heads) {
    scale_ = o.scale != 0 ? o.scale : 1.0f / std::sqrt(static_cast<float>(d_));
    for (int64_t i = 0, at = 0; i < rows.queries.count(); ++i) {
      mask_offsets_.push_back(at);
      at += rows.queries.length(i) * rows.keys.length(i);
    }
  }

  /// Calls f(segment, head, begin) for all blocks.
  template <class F>
  void for_blocks(const F& f) const {
    struct Start {
      int64_t segment, head, begin;
    };
    std::vector<Start> starts;
    for (int64_t s = 0; s < rows_.queries.count(); ++s) {
      for (int64_t h = 0; h < options_.heads; ++h) {
        for (int64_t b = 0; b < rows_.queries.length(s); b += step(s)) starts.push_back({s, h, b});
      }
    }
    parallel_for(static_cast<int64_t>(starts.size()),
                 [&](int64_t i) { f(block(starts[i].segment, starts[i].head, starts[i].begin)); });
  }

  // Queries of a block: the order of sums depends on it, so it is a function of the segment alone.
  int64_t step(int64_t segment) const {
    const int64_t m = std::max<int64_t>(1, rows_.keys.length(segment));
    return std::clamp<int64_t>(kBlockScores / m / 8 * 8, 8, kMostQueries);
  }

  QueryBlock block(int64_t segment, int64_t head, int64_t begin) const {
    const int64_t n = rows_.queries.length(segment), m = rows_.keys.length(segment);
    QueryBlock b{.segment = segment,
                 .head = head,
                 .q_first = rows_.queries.begin(segment) + begin,
                 .n = std::min(step(segment), n - begin),
                 .k_first = rows_.keys.begin(segment),
                 .m = m};
    if (!rows_.hidden.empty()) b.hidden = rows_.hidden.data() + mask_offsets_[segment] + begin * m;
    if (has_order(rows_)) b.m = seen_keys(b);
    if (b.m == 0) return b;
    const auto q = std::minmax_element(rows_.query_positions.begin() + b.q_first,
                                       rows_.query_positions.begin() + b.q_first + b.n);
    const auto first = rows_.key_positions.begin() + b.k_first;
    const auto k = std::minmax_element(first, first + b.m);
    b.r_first = options_.row_of_r(x_.r.size(0), *q.second, *k.first);
    b.r_count = options_.row_of_r(x_.r.size(0), *q.first, *k.second) - b.r_first + 1;
    b.is_run = true;
    for (int64_t j = 1; j < b.m && b.is_run; ++j) b.is_run = first[j] == first[j - 1] + 1;
    return b;
  }

  // softmax(scores) of a block, before dropout: [n, m], in `memory`.
  Rows weights(const QueryBlock& b, ThreadMemory& memory) const {
    const Rows s = rows_in(memory.weights, b.n, b.m), far = rows_in(memory.far, b.n, b.r_count);
    kernels().gemm({.a = queries(x_.content, b), .b = keys(x_.k, b), .c = s, .transpose_b = true});
    kernels().gemm(
        {.a = queries(x_.distance, b), .b = distances(b), .c = far, .transpose_b = true});
    for (int64_t i = 0; i < b.n; ++i) {
      float* const score = s.row<float>(i);
      const float* const from = far.row<float>(i);
      for_keys(b, i, [&](int64_t j, int64_t t) { score[j] = (score[j] + from[t]) * scale_; });
      add_types(b, i, score);
      hide(b, i, score);
    }
    kernels().softmax(s, s);
    return s;
  }

  void forward(const QueryBlock& b, const Tensor& out) const {
    if (b.m == 0) return;  // zeros
    ThreadMemory& memory = thread_memory();
    const Rows w = used(b, weights(b, memory), memory);
    kernels().gemm({.a = as(w, x_.v.dtype(), memory), .b = keys(x_.v, b), .c = queries(out, b)});
  }

  struct Gradients {
    Tensor content, distance, k, v, r, types;  // k, v f32; r f32, one after the other by segment
  };
  void backward(const QueryBlock& b, const Tensor& dy, const Gradients& d) const;

  Rows queries(const Tensor& x, const QueryBlock& b) const {
    return x.rows().slice(b.q_first, b.n).columns(b.head * d_, d_);
  }
  Rows keys(const Tensor& x, const QueryBlock& b) const {
    return x.rows().slice(b.k_first, b.m).columns(b.head * d_, d_);
  }
  Rows distances(const QueryBlock& b) const {
    return x_.r.rows().slice(b.r_first, b.r_count).columns(b.head * d_, d_);
  }

 private:
  // Keys up to the last that a query of the block sees.
  int64_t seen_keys(const QueryBlock& b) const {
    const auto begin = rows_.visibility.limit.begin() + b.q_first;
    const int32_t limit = *std::max_element(begin, begin + b.n);
    int64_t m = b.m;
    while (m > 0 && rows_.visibility.order[b.k_first + m - 1] >= limit) --m;
    return m;
  }

  // Calls f(key, column of the block's rows of r) for the keys of query i of a block.
  template <class F>
  void for_keys(const QueryBlock& b, int64_t i, const F& f) const {
    const int32_t* const positions = rows_.key_positions.data() + b.k_first;
    const int64_t shift = int64_t{options_.farthest} - rows_.query_positions[b.q_first + i];
    const int64_t last = x_.r.size(0) - 1;
    if (!b.is_run) {
      for (int64_t j = 0; j < b.m; ++j) {
        f(j, std::clamp<int64_t>(shift + positions[j], 0, last) - b.r_first);
      }
      return;
    }
    const int64_t first =
        shift + positions[0];  // of key 0; row 0 of r up to `low`, the last from `high`
    const int64_t low = std::clamp<int64_t>(-first, 0, b.m);
    const int64_t high = std::clamp<int64_t>(last + 1 - first, low, b.m);
    for (int64_t j = 0; j < low; ++j) f(j, -b.r_first);
    for (int64_t j = low; j < high; ++j) f(j, first + j - b.r_first);
    for (int64_t j = high; j < b.m; ++j) f(j, last - b.r_first);
  }

  void add_types(const QueryBlock& b, int64_t i, float* score) const {
    if (!x_.types.defined()) return;
    const float* const of_query = x_.types.rows().row<float>(b.q_first + i) + 2 * b.head;
    const float same = of_query[0] * scale_, other = of_query[1] * scale_;
    const int32_t type = rows_.query_types[b.q_first + i];
    const int32_t* const types = rows_.key_types.data() + b.k_first;
    for (int64_t j = 0; j < b.m; ++j) score[j] += types[j] == type ? same : other;
  }

  void hide(const QueryBlock& b, int64_t i, float* score) const {
    if (b.hidden != nullptr) {
      const uint8_t* const hidden = b.hidden + i * rows_.keys.length(b.segment);
      for (int64_t j = 0; j < b.m; ++j) score[j] += hidden[j] != 0 ? kHidden : 0.0f;
    }
    if (!has_order(rows_)) return;
    const int32_t first = rows_.visibility.first[b.q_first + i],
                  limit = rows_.visibility.limit[b.q_first + i];
    const int32_t* const order = rows_.visibility.order.data() + b.k_first;
    for (int64_t j = 0; j < b.m; ++j) {
      score[j] = order[j] < first || order[j] >= limit ? kUnseen : score[j];
    }
  }

  // The weights after dropout.
  Rows used(const QueryBlock& b, const Rows& weights, ThreadMemory& memory) const {
    if (options_.dropout.p <= 0) return weights;
    const Rows y = rows_in(memory.used, b.n, b.m);
    kernels().dropout(weights, dropout(b), y);
    return y;
  }

  Dropout dropout(const QueryBlock& b) const {
    Dropout d = options_.dropout.of_head(b.head).over(x_.content.size(0));
    if (d.p > 0) d.sample += b.q_first, d.position += b.q_first;
    return d;
  }

  const RelativeInputs& x_;
  const RelativeRows& rows_;
  const RelativeOptions& options_;
  int64_t d_;
  float scale_;
  std::vector<int64_t> mask_offsets_;  // where a segment's part of the mask begins
};

// With weights w, dw = dy vᵀ, and ds = w (dw - sum(w dw)) scale:
//   dcontent = ds k, dk += dsᵀ content, dv += wᵀ dy,
// and with ds moved to the rows of r that each key's distance names, ddistance and dr alike.
void Call::backward(const QueryBlock& b, const Tensor& dy, const Gradients& d) const {
  if (b.m == 0) return;
  ThreadMemory& memory = thread_memory();
  const DType dtype = x_.v.dtype();
  const Rows w = weights(b, memory), back = rows_in(memory.back, b.n, b.m), g = queries(dy, b);
  kernels().gemm({.a = as(used(b, w, memory), dtype, memory),
                  .b = g,
                  .c = keys(d.v, b),
                  .transpose_a = true,
                  .accumulate = true});
  kernels().gemm({.a = g, .b = keys(x_.v, b), .c = back, .transpose_b = true});
  if (options_.dropout.p > 0) kernels().dropout(back, dropout(b), back);
  kernels().softmax_backward(w, back, back);
  kernels().axpby(scale_, back, 0, back);
  const auto products = [&](const Rows& ds, const Rows& q, const Rows& k, const Rows& dq,
                            const Rows& dk) {
    const Rows a = as(ds, dtype, memory);
    kernels().gemm({.a = a, .b = k, .c = dq});
    kernels().gemm({.a = a, .b = q, .c = dk, .transpose_a = true, .accumulate = true});
  };
  products(back, queries(x_.content, b), keys(x_.k, b), queries(d.content, b), keys(d.k, b));
  const Rows far = rows_in(memory.far, b.n, b.r_count);
  for (int64_t i = 0; i < b.n; ++i) {
    float* const to = far.row<float>(i);
    const float* const ds = back.row<float>(i);
    std::fill(to, to + b.r_count, 0.0f);
    for_keys(b, i, [&](int64_t j, int64_t t) { to[t] += ds[j]; });
    if (!d.types.defined()) continue;
    float* const dtypes = d.types.rows().row<float>(b.q_first + i) + 2 * b.head;
    for (int64_t j = 0; j < b.m; ++j) {
      dtypes[rows_.key_types[b.k_first + j] != rows_.query_types[b.q_first + i]] += ds[j];
    }
  }
  const Rows dr =
      d.r.rows().slice(b.segment * x_.r.size(0) + b.r_first, b.r_count).columns(b.head * d_, d_);
  products(far, queries(x_.distance, b), distances(b), queries(d.distance, b), dr);
}

// Sums parts of equal numbers of rows, in order.
Tensor sum_of_parts(const Tensor& parts, int64_t rows) {
  const Tensor sum = parts.slice(0, 0, rows);
  for (int64_t at = rows; at < parts.size(0); at += rows) {
    kernels().add(sum.rows(), parts.slice(0, at, rows).rows(), sum.rows());
  }
  return sum;
}

Grads gradients(const RelativeInputs& x, const RelativeRows& rows, const RelativeOptions& o,
                const Tensor& dy) {
  const Call call(x, rows, o);
  const int64_t segments = rows.queries.count(), distances = x.r.size(0);
  Call::Gradients d{
      .content = Tensor::zeros(x.content.shape(), x.content.dtype()),
      .distance = Tensor::zeros(x.content.shape(), x.content.dtype()),
      .k = Tensor::zeros(x.k.shape(), DType::f32),
      .v = Tensor::zeros(x.k.shape(), DType::f32),
      .r = Tensor::zeros({std::max<int64_t>(1, segments) * distances, x.r.size(1)}, DType::f32),
      .types = x.types.defined() ? Tensor::zeros(x.types.shape(), DType::f32) : Tensor()};
  // Blocks of one segment and head add to the same keys: one thread takes them in order.
  parallel_for(segments * o.heads, [&](int64_t i) {
    const int64_t segment = i / o.heads;
    for (int64_t begin = 0; begin < rows.queries.length(segment); begin += call.step(segment)) {
      call.backward(call.block(segment, i % o.heads, begin), dy, d);
    }
  });
  const NoGrad off;
  return {d.content,
          d.distance,
          cast(d.k, x.k.dtype()),
          cast(d.v, x.v.dtype()),
          cast(sum_of_parts(d.r, distances), x.r.dtype()),
          d.types};
}

}  // namespace

Tensor relative_attention(const RelativeInputs& x, const RelativeRows& rows,
                          const RelativeOptions& options) {
  check_sizes(x, rows, options);
  const Tensor out = Tensor::zeros(x.content.shape(), x.content.dtype());
  const RelativeInputs plain = x.detached();
  const Call call(plain, rows, options);
  if (is_counting()) {  // scores of contents and of distances, and the weighted sum
    const int64_t pairs = visible_pairs(rows.queries, rows.keys, false, &rows.visibility);
    count_work({0, 3 * 2.0 * static_cast<double>(pairs * out.size(1))});
  } else {
    call.for_blocks([&](const QueryBlock& b) { call.forward(b, out); });
  }
  if (!needs_record({&x.content, &x.distance, &x.k, &x.v, &x.r, &x.types})) return out;
  return record("relative_attention", {x.content, x.distance, x.k, x.v, x.r, x.types}, out,
                [plain, rows, options](const Tensor& dy) -> Grads {
                  return gradients(plain, rows, options, dy);
                });
}

Tensor relative_attention_weights(const RelativeInputs& x, const RelativeRows& rows,
                                  const RelativeOptions& options, int64_t segment, int64_t head,
                                  QueryRows of) {
  check_sizes(x, rows, options);
  const NoGrad off;
  if (of.count < 0) of.count = rows.queries.length(segment) - of.first;
  const RelativeInputs plain = x.detached();
  const Call call(plain, rows, options);
  const Tensor all = Tensor::zeros({of.count, rows.keys.length(segment)}, DType::f32);
  for (int64_t done = 0; done < of.count; done += call.step(segment)) {
    const QueryBlock b = call.block(segment, head, of.first + done);
    const int64_t count = std::min(b.n, of.count - done);
    if (b.m == 0) continue;
    kernels().convert(call.weights(b, thread_memory()).slice(0, count),
                      all.rows().slice(done, count).columns(0, b.m));
  }
  return all;
}

}  // namespace heddle
