// Attention by the fused kernel.
#include "heddle/ops/attention.h"

#include <cmath>
#include <utility>

#include "heddle/ops/elementwise.h"
#include "heddle/ops/reduce.h"
#include "heddle/ops/scoring.h"
#include "heddle/ops/shape.h"

namespace heddle {
namespace {

// Whether the fused kernel is not for it.
bool is_plain(const AttentionOptions& o) { return o.scoring != Scoring::dot; }

// Columns of q, and of k or v, in a fused qkv.
std::pair<int64_t, int64_t> widths_of(const Tensor& qkv, const AttentionOptions& o) {
  const int64_t all = o.heads + 2 * key_heads_of(o);
  check(qkv.size(1) % all == 0, ErrorKind::shape,
        "attention: {} columns of queries, keys and values are not {} heads", qkv.size(1), all);
  return {qkv.size(1) / all * o.heads, qkv.size(1) / all * key_heads_of(o)};
}

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

// The bias of each head and distance, as the kernel takes it: [heads, 2 * reach + 1].
Tensor by_distance(const RelativeBias& bias) {
  if (!bias.table.defined()) return {};
  const int64_t heads = bias.table.size(1), distances = 2 * bias.reach() + 1;
  const Tensor values = Tensor::empty({heads, distances}, DType::f32);
  for (int64_t d = 0; d < distances; ++d) {
    const int32_t bucket = (*bias.buckets)[d];
    check(bucket >= 0 && bucket < bias.table.size(0), ErrorKind::shape,
          "attention: bucket {} of a bias of {} buckets", bucket, bias.table.size(0));
    for (int64_t h = 0; h < heads; ++h) {
      values.data<float>()[h * distances + d] = bias.table.rows().row<float>(bucket)[h];
    }
  }
  return values;
}

// The gradient of the table from that of by_distance().
Tensor table_gradient(const RelativeBias& bias, const Tensor& d_values) {
  const Tensor d_table = Tensor::zeros(bias.table.shape(), DType::f32);
  const int64_t heads = d_values.size(0), distances = d_values.size(1);
  for (int64_t d = 0; d < distances; ++d) {
    float* const to = d_table.rows().row<float>((*bias.buckets)[d]);
    for (int64_t h = 0; h < heads; ++h) to[h] += d_values.data<float>()[h * distances + d];
  }
  return d_table;
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
          .bias = bias.defined() ? ScoreBias{bias.data<float>(), o.bias.reach()} : ScoreBias{},
          .dropout = o.dropout.over(q.size(0))};
}

struct SavedAttention {
  Tensor q, k, v, out, lse;
  Segments queries, keys;
  AttentionOptions options;
  Tensor bias;  // by_distance()
};

SavedAttention forward(const Tensor& q, const Tensor& k, const Tensor& v, const Segments& queries,
                       const Segments& keys, const AttentionOptions& o, bool keep) {
  check_attention(q, k, v, queries, keys, o);
  SavedAttention s{q.detached(),
                   k.detached(),
                   v.detached(),
                   Tensor::empty(q.shape(), q.dtype()),
                   {},
                   queries,
                   keys,
                   o,
                   by_distance(o.bias)};
  AttentionArgs args = arguments(q, k, v, s.out, queries, keys, o, s.bias);
  if (keep) {
    check(o.key_rows.empty(), ErrorKind::internal, "attention over key_rows has no gradient");
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

}  // namespace

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const Segments& queries,
                 const Segments& keys, const AttentionOptions& options) {
  if (is_plain(options)) return scored_attention(q, k, v, queries, keys, options);
  const bool keep = needs_grad({&q, &k, &v, &options.bias.table});
  const SavedAttention s = forward(q, k, v, queries, keys, options, keep);
  if (!keep) return s.out;
  return record("attention", {q, k, v, options.bias.table}, s.out, [s](const Tensor& dy) -> Grads {
    Tensor dq = Tensor::empty(s.q.shape(), s.q.dtype());
    Tensor dk = Tensor::empty(s.k.shape(), s.k.dtype());
    Tensor dv = Tensor::empty(s.v.shape(), s.v.dtype());
    const Tensor d_table = gradients(s, dy, dq, dk, dv);
    return {dq, dk, dv, d_table};
  });
}

Tensor self_attention(const Tensor& qkv, const Segments& segments,
                      const AttentionOptions& options) {
  const auto [d, e] = widths_of(qkv, options);
  if (is_plain(options)) {
    return scored_attention(slice(qkv, 1, 0, d), slice(qkv, 1, d, e), slice(qkv, 1, d + e, e),
                            segments, segments, options);
  }
  const bool keep = needs_grad({&qkv, &options.bias.table});
  const Tensor x = qkv.detached();
  const SavedAttention s = forward(x.slice(1, 0, d), x.slice(1, d, e), x.slice(1, d + e, e),
                                   segments, segments, options, keep);
  if (!keep) return s.out;
  const auto backward = [s, d = d, e = e](const Tensor& dy) -> Grads {
    Tensor dqkv = Tensor::empty({s.q.size(0), d + 2 * e}, s.q.dtype());
    const Tensor d_table =
        gradients(s, dy, dqkv.slice(1, 0, d), dqkv.slice(1, d, e), dqkv.slice(1, d + e, e));
    return {dqkv, d_table};
  };
  return record("self_attention", {qkv, options.bias.table}, s.out, backward);
}

Tensor cross_attention(const Tensor& q, const Tensor& kv, const Segments& queries,
                       const Segments& keys, const AttentionOptions& options) {
  const int64_t d = kv.size(1) / 2;
  if (is_plain(options)) {
    return scored_attention(q, slice(kv, 1, 0, d), slice(kv, 1, d, d), queries, keys, options);
  }
  const bool keep = needs_grad({&q, &kv, &options.bias.table});
  const Tensor x = kv.detached();
  const SavedAttention s =
      forward(q, x.slice(1, 0, d), x.slice(1, d, d), queries, keys, options, keep);
  if (!keep) return s.out;
  const auto backward = [s, d](const Tensor& dy) -> Grads {
    Tensor dq = Tensor::empty(s.q.shape(), s.q.dtype());
    Tensor dkv = Tensor::empty({s.k.size(0), 2 * d}, s.k.dtype());
    const Tensor d_table = gradients(s, dy, dq, dkv.slice(1, 0, d), dkv.slice(1, d, d));
    return {dq, dkv, d_table};
  };
  return record("cross_attention", {q, kv, options.bias.table}, s.out, backward);
}

Tensor attention_weights(const Tensor& q, const Tensor& k, const Segments& queries,
                         const Segments& keys, const AttentionOptions& o, int64_t segment,
                         int64_t head) {
  return attention_weights(q, k, queries, keys, o, segment, head, {0, queries.length(segment)});
}

Tensor attention_weights(const Tensor& q, const Tensor& k, const Segments& queries,
                         const Segments& keys, const AttentionOptions& o, int64_t segment,
                         int64_t head, QueryRows rows) {
  NoGrad off;
  const int64_t d = q.size(1) / o.heads, m = keys.length(segment);
  const int64_t shared = head / (o.heads / key_heads_of(o));
  const auto part = [&](const Tensor& x, int64_t first, int64_t count) {
    const int64_t column = (&x == &q ? head : shared) * d;
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

}  // namespace heddle
