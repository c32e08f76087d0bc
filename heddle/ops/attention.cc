// Attention by the fused kernel; the weights of small attention by own loops.
#include "heddle/ops/attention.h"

#include <array>
#include <cmath>

#include "heddle/base/parallel.h"
#include "heddle/kernels/family.h"
#include "heddle/ops/elementwise.h"
#include "heddle/ops/reduce.h"
#include "heddle/ops/scoring.h"
#include "heddle/ops/shape.h"

namespace heddle {
namespace {

// to[r] = the sums of `from` over the heads that share keys, in order.
void sum_groups(const Tensor& from, int64_t head_width, const Tensor& to) {
  const int64_t group = from.size(1) / to.size(1);
  for (int64_t c = 0; c < to.size(1); c += head_width) {
    const Rows sum = to.slice(1, c, head_width).rows();
    for (int64_t g = 0; g < group; ++g) {
      const Rows part = from.slice(1, c * group + g * head_width, head_width).rows();
      kernels().axpby(1, part, g == 0 ? 0.0f : 1.0f, sum);
    }
  }
}

float scale_of(const AttentionOptions& o, int64_t head_dim) {
  return o.scale != 0 ? o.scale : 1.0f / std::sqrt(static_cast<float>(head_dim));
}

ScoreBias form_of(const RelativeBias& bias) {
  return {.reach = bias.reach(), .side = bias.codes ? std::ssize(*bias.codes) : 0};
}

// The row of the table for each of a head's values, as the kernel takes them.
std::vector<int32_t> rows_of(const RelativeBias& bias) {
  const ScoreBias form = form_of(bias);
  std::vector<int32_t> rows = *bias.buckets;
  if (form.is_by_pairs()) {
    rows.clear();
    for (int64_t i = 0; i < form.entries(); ++i) {
      rows.push_back(bias.bucket(bias.distance(i / form.side, i % form.side)));
    }
  }
  for (const int32_t row : rows) {
    check(row >= 0 && row < bias.table.size(0), ErrorKind::shape,
          "attention: bucket {} of a bias of {} buckets", row, bias.table.size(0));
  }
  return rows;
}

// The bias as the kernel takes it: [heads, ScoreBias::entries()].
Tensor values_of(const RelativeBias& bias) {
  if (!bias.table.defined()) return {};
  const std::vector<int32_t> rows = rows_of(bias);
  const int64_t heads = bias.table.size(1), entries = std::ssize(rows);
  const Tensor values = Tensor::empty({heads, entries}, DType::f32);
  for (int64_t i = 0; i < entries; ++i) {
    const float* const from = bias.table.rows().row<float>(rows[static_cast<size_t>(i)]);
    for (int64_t h = 0; h < heads; ++h) values.data<float>()[h * entries + i] = from[h];
  }
  return values;
}

// The gradient of the table from that of values_of().
Tensor table_gradient(const RelativeBias& bias, const Tensor& d_values) {
  const Tensor d_table = Tensor::zeros(bias.table.shape(), DType::f32);
  const std::vector<int32_t> rows = rows_of(bias);
  const int64_t heads = d_values.size(0), entries = d_values.size(1);
  for (int64_t i = 0; i < entries; ++i) {
    float* const to = d_table.rows().row<float>(rows[static_cast<size_t>(i)]);
    for (int64_t h = 0; h < heads; ++h) to[h] += d_values.data<float>()[h * entries + i];
  }
  return d_table;
}

ScoreBias score_bias(const RelativeBias& bias, const Tensor& values) {
  if (!values.defined()) return {};
  ScoreBias form = form_of(bias);
  form.values = values.data<float>();
  return form;
}

KeyRanges ranges_of(const AttentionOptions& o) {
  if (o.visibility == nullptr || o.visibility->is_all()) return {};
  const Visibility& v = *o.visibility;
  return {v.first.data(), v.limit.data(), v.order.empty() ? nullptr : v.order.data()};
}

// The arguments of the kernel; segments, row ids and the bias must outlive them.
AttentionArgs arguments(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out,
                        const Segments& queries, const Segments& keys, const AttentionOptions& o,
                        const Tensor& bias) {
  const int64_t head_dim = q.size(1) / o.heads;
  return {.q = q.rows(),
          .k = k.rows(),
          .v = v.rows(),
          .o = out.rows(),
          .q_offsets = queries.offsets().data(),
          .k_offsets = keys.offsets().data(),
          .segments = queries.count(),
          .key_rows = o.key_rows.empty() ? nullptr : o.key_rows.data(),
          .heads = o.heads,
          .head_dim = head_dim,
          .scale = scale_of(o, head_dim),
          .causal = o.causal && o.visibility == nullptr,
          .ranges = ranges_of(o),
          .bias = score_bias(o.bias, bias),
          .dropout = o.dropout.over(q.size(0))};
}

// What the backward pass needs; all but `out` and `bias` only where there is one.
struct SavedAttention {
  Tensor q = {}, k = {}, v = {}, out, lse = {};
  Segments queries = {}, keys = {};
  AttentionOptions options = {};
  Tensor bias;  // values_of()
};

SavedAttention forward(const Tensor& q, const Tensor& k, const Tensor& v, const Segments& queries,
                       const Segments& keys, const AttentionOptions& o, bool keep) {
  check_attention(q, k, v, queries, keys, o);
  SavedAttention s{.out = Tensor::empty(q.shape(), q.dtype()), .bias = values_of(o.bias)};
  AttentionArgs args = arguments(q, k, v, s.out, queries, keys, o, s.bias);
  if (keep) {
    check(o.key_rows.empty(), ErrorKind::internal, "attention over key_rows has no gradient");
    s.q = q.detached(), s.k = k.detached(), s.v = v.detached();
    s.queries = queries, s.keys = keys, s.options = o;
    s.lse = Tensor::empty({q.size(0), o.heads}, DType::f32);
    args.lse = s.lse.data<float>();
  }
  kernels().attention(args);
  return s;
}

// The gradients of keys and values that several heads share are computed head by head, then summed.
// returns: that of the bias's table
Tensor gradients(const SavedAttention& s, const Tensor& dy, const Tensor& dq, const Tensor& dk,
                 const Tensor& dv) {
  if (dk.size(1) != dq.size(1)) {
    const Shape each{dk.size(0), dq.size(1)};
    const Tensor ks = Tensor::zeros(each, dk.dtype()), vs = Tensor::zeros(each, dv.dtype());
    const Tensor d_table = gradients(s, dy, dq, ks, vs);
    sum_groups(ks, dq.size(1) / s.options.heads, dk);
    sum_groups(vs, dq.size(1) / s.options.heads, dv);
    return d_table;
  }
  AttentionBackwardArgs args{
      .forward = arguments(s.q, s.k, s.v, s.out, s.queries, s.keys, s.options, s.bias),
      .d_o = dy.rows(),
      .dq = dq.rows(),
      .dk = dk.rows(),
      .dv = dv.rows()};
  args.forward.lse = s.lse.data<float>();
  Tensor d_bias;
  if (s.bias.defined()) {
    d_bias = Tensor::empty(s.bias.shape(), DType::f32);
    args.d_bias = d_bias.data<float>();
  }
  kernels().attention_backward(args);
  return d_bias.defined() ? table_gradient(s.options.bias, d_bias) : Tensor();
}

// Columns of one of the inputs of an op: queries, keys or values.
struct InputColumns {
  size_t input;
  int64_t first, count;
  Tensor of(const std::vector<Tensor>& all) const { return all[input].slice(1, first, count); }
};

// Attention of q, k and v in that order; the last of the inputs is the table of the bias.
Tensor attention_of(const char* name, const std::vector<Tensor>& inputs,
                    const std::array<InputColumns, 3>& parts, const Segments& queries,
                    const Segments& keys, const AttentionOptions& options) {
  if (options.scoring != Scoring::dot) {  // the fused kernel is not for it
    const auto part = [&](const InputColumns& p) {
      const Tensor& x = inputs[p.input];
      return p.count == x.size(1) ? x : slice(x, 1, p.first, p.count);
    };
    return scored_attention(part(parts[0]), part(parts[1]), part(parts[2]), queries, keys, options);
  }
  bool keep = false;
  for (const Tensor& input : inputs) keep = keep || needs_grad({&input});
  const SavedAttention s = forward(parts[0].of(inputs), parts[1].of(inputs), parts[2].of(inputs),
                                   queries, keys, options, keep);
  Tensor y = s.out;
  if (!keep && !needs_record({})) return y;
  std::vector<Shape> shapes;
  for (size_t i = 0; i + 1 < inputs.size(); ++i) shapes.push_back(inputs[i].shape());
  record_many(name, inputs, {&y}, [s, parts, shapes](std::span<const Tensor> dys) -> Grads {
    Grads grads;
    for (const Shape& shape : shapes) grads.push_back(Tensor::empty(shape, s.q.dtype()));
    grads.push_back(
        gradients(s, dys[0], parts[0].of(grads), parts[1].of(grads), parts[2].of(grads)));
    return grads;
  });
  return y;
}

// --- weights with a gradient ---------------------------------------------------------------------

// One head of one segment, in f32: q: [n, d], k: [m, d].
struct HeadRows {
  int64_t n = 0, m = 0, d = 0;
  std::vector<float> q, k;
};

// Of some rows of x the columns of a head.
std::vector<float> columns_of(const Tensor& x, int64_t first, int64_t count, int64_t column,
                              int64_t d) {
  std::vector<float> y(static_cast<size_t>(count * d));
  const Rows rows = x.rows();
  visit_float(x.dtype(), [&]<class T>() {
    for (int64_t r = 0; r < count; ++r) {
      const T* const from = rows.row<T>(first + r) + column;
      for (int64_t c = 0; c < d; ++c) y[r * d + c] = static_cast<float>(from[c]);
    }
  });
  return y;
}

// The other way.
void put_columns(const std::vector<float>& y, const Tensor& x, int64_t first, int64_t column,
                 int64_t d) {
  const Rows rows = x.rows();
  visit_float(x.dtype(), [&]<class T>() {
    for (int64_t r = 0; r < std::ssize(y) / d; ++r) {
      T* const to = rows.row<T>(first + r) + column;
      for (int64_t c = 0; c < d; ++c) to[c] = static_cast<T>(y[r * d + c]);
    }
  });
}

// softmax(q kᵀ scale): [n, m]. The keys lie side by side, so that a row's sums grow together.
void head_weights(const HeadRows& x, float scale, float* weights) {
  std::vector<float> across(x.k.size());
  for (int64_t j = 0; j < x.m; ++j) {
    for (int64_t c = 0; c < x.d; ++c) across[c * x.m + j] = x.k[j * x.d + c];
  }
  for (int64_t i = 0; i < x.n; ++i) {
    float* const row = weights + i * x.m;
    std::fill_n(row, x.m, 0.0f);
    for (int64_t c = 0; c < x.d; ++c) {
      const float factor = x.q[i * x.d + c] * scale;
      for (int64_t j = 0; j < x.m; ++j) row[j] += factor * across[c * x.m + j];
    }
    const float most = x.m > 0 ? *std::max_element(row, row + x.m) : 0.0f;
    float sum = 0;
    for (int64_t j = 0; j < x.m; ++j) sum += row[j] = std::exp(row[j] - most);
    for (int64_t j = 0; j < x.m; ++j) row[j] /= sum;
  }
}

// dS = P (dP - sum_j P dP) scale, where dP is a share of d_mean; dq = dS k, dk = dSᵀ q.
// weights, d_mean: [n, m]
std::array<std::vector<float>, 2> head_gradients(const HeadRows& x, float scale, float share,
                                                 const float* weights, const float* d_mean) {
  std::array<std::vector<float>, 2> grads = {std::vector<float>(x.q.size()),
                                             std::vector<float>(x.k.size())};
  for (int64_t i = 0; i < x.n; ++i) {
    const float *const p = weights + i * x.m, *const dp = d_mean + i * x.m;
    float mean = 0;
    for (int64_t j = 0; j < x.m; ++j) mean += p[j] * dp[j];
    for (int64_t j = 0; j < x.m; ++j) {
      const float ds = p[j] * (dp[j] - mean) * share * scale;
      for (int64_t c = 0; c < x.d; ++c) {
        grads[0][i * x.d + c] += ds * x.k[j * x.d + c];
        grads[1][j * x.d + c] += ds * x.q[i * x.d + c];
      }
    }
  }
  return grads;
}

// What the weights of all segments and heads are computed from.
struct SmallAttention {
  Tensor q, k;
  Segments queries, keys;
  int64_t heads, d;
  float scale;
  std::vector<int64_t> places = {0};  // of each segment: its first pair, and behind the last

  SmallAttention(const Tensor& of_q, const Tensor& of_k, const Segments& query_rows,
                 const Segments& key_rows, const AttentionOptions& o)
      : q(of_q.detached()),
        k(of_k.detached()),
        queries(query_rows),
        keys(key_rows),
        heads(o.heads),
        d(of_q.size(1) / o.heads),
        scale(scale_of(o, d)) {
    for (int64_t s = 0; s < queries.count(); ++s) places.push_back(places.back() + pairs(s));
  }
  int64_t pairs(int64_t s) const { return queries.length(s) * keys.length(s); }
  HeadRows rows(int64_t s, int64_t h) const {
    const int64_t n = queries.length(s), m = keys.length(s);
    return {n, m, d, columns_of(q, queries.begin(s), n, h * d, d),
            columns_of(k, keys.begin(s), m, h * d, d)};
  }
  // Where the weights of a head stand in those of all.
  int64_t place(int64_t s, int64_t h) const { return places[s] * heads + h * pairs(s); }
};

// Writes the means, and the weights of each head: [heads * pairs].
void mean_weights(const SmallAttention& a, float* means, float* weights) {
  parallel_for(a.queries.count(), [&](int64_t s) {
    float* const mean = means + a.places[s];
    std::fill_n(mean, a.pairs(s), 0.0f);
    for (int64_t h = 0; h < a.heads; ++h) {
      float* const own = weights + a.place(s, h);
      head_weights(a.rows(s, h), a.scale, own);
      for (int64_t p = 0; p < a.pairs(s); ++p) mean[p] += own[p] / static_cast<float>(a.heads);
    }
  });
}

Grads mean_weights_gradients(const SmallAttention& a, const float* weights, const float* d_means) {
  const Grads grads = {Tensor::empty(a.q.shape(), a.q.dtype()),
                       Tensor::empty(a.k.shape(), a.k.dtype())};
  const float share = 1 / static_cast<float>(a.heads);
  parallel_for(a.queries.count(), [&](int64_t s) {
    for (int64_t h = 0; h < a.heads; ++h) {
      const auto [dq, dk] = head_gradients(a.rows(s, h), a.scale, share, weights + a.place(s, h),
                                           d_means + a.places[s]);
      put_columns(dq, grads[0], a.queries.begin(s), h * a.d, a.d);
      put_columns(dk, grads[1], a.keys.begin(s), h * a.d, a.d);
    }
  });
  return grads;
}

}  // namespace

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const Segments& queries,
                 const Segments& keys, const AttentionOptions& options) {
  return attention_of("attention", {q, k, v, options.bias.table},
                      {{{0, 0, q.size(1)}, {1, 0, k.size(1)}, {2, 0, v.size(1)}}}, queries, keys,
                      options);
}

Tensor self_attention(const Tensor& qkv, const Segments& segments,
                      const AttentionOptions& options) {
  const int64_t all = options.heads + 2 * options.heads_of_keys();
  check(qkv.size(1) % all == 0, ErrorKind::shape,
        "attention: {} columns of queries, keys and values are not {} heads", qkv.size(1), all);
  const int64_t d = qkv.size(1) / all * options.heads;
  const int64_t e = qkv.size(1) / all * options.heads_of_keys();
  return attention_of("self_attention", {qkv, options.bias.table},
                      {{{0, 0, d}, {0, d, e}, {0, d + e, e}}}, segments, segments, options);
}

Tensor cross_attention(const Tensor& q, const Tensor& kv, const Segments& queries,
                       const Segments& keys, const AttentionOptions& options) {
  const int64_t d = kv.size(1) / 2;
  return attention_of("cross_attention", {q, kv, options.bias.table},
                      {{{0, 0, q.size(1)}, {1, 0, d}, {1, d, d}}}, queries, keys, options);
}

Tensor attention_weights(const Tensor& q, const Tensor& k, const Segments& queries,
                         const Segments& keys, const AttentionOptions& o, int64_t segment,
                         int64_t head, QueryRows rows) {
  const NoGrad off;
  if (rows.count < 0) rows.count = queries.length(segment) - rows.first;
  const int64_t d = q.size(1) / o.heads, m = keys.length(segment);
  const auto part = [&](const Tensor& x, int64_t first, int64_t count) {
    const int64_t column = (&x == &q ? head : o.key_head(head)) * d;
    return cast(x.slice(0, first, count).slice(1, column, d), DType::f32);
  };
  AttentionOptions in_f32 = o;
  if (o.score_weight.defined()) in_f32.score_weight = cast(o.score_weight, DType::f32);
  const int64_t first = queries.begin(segment) + rows.first;
  const Tensor scores =
      head_scores(part(q, first, rows.count), part(k, keys.begin(segment), m), in_f32, head);
  const int64_t position = rows.first + m - queries.length(segment);
  return softmax(
      hide(add_bias(scores, o.bias, head, position), seen_keys(queries, keys, segment, rows, o)));
}

Tensor mean_attention_weights(const Tensor& q, const Tensor& k, const Segments& queries,
                              const Segments& keys, const AttentionOptions& o) {
  check_attention(q, k, k, queries, keys, o);
  check(o.scoring == Scoring::dot && !o.causal && o.visibility == nullptr && o.key_rows.empty() &&
            !o.bias.table.defined() && o.heads_of_keys() == o.heads,
        ErrorKind::internal,
        "attention: means of weights are of products, where each head has keys of its own and all "
        "of them are seen");
  const SmallAttention a(q, k, queries, keys, o);
  const int64_t pairs = a.places.back();
  const Tensor means = Tensor::empty({pairs}, DType::f32);
  const Tensor weights = Tensor::empty({a.heads * pairs}, DType::f32);
  if (is_counting()) {
    count_work({bytes_of(q.rows()) + bytes_of(k.rows()) + 4 * pairs,
                2 * static_cast<double>(a.heads * a.d * pairs)});
  } else {
    mean_weights(a, means.data<float>(), weights.data<float>());
  }
  return record("mean_attention_weights", {q, k}, means, [a, weights](const Tensor& dy) -> Grads {
    return mean_weights_gradients(a, weights.data<float>(), dy.to_contiguous().data<float>());
  });
}

}  // namespace heddle
