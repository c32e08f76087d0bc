// Projections of three inputs; queries and keys of one input are one product.
#include "heddle/nn/positioned_attention.h"

#include "heddle/ops/shape.h"

namespace heddle::nn {
namespace {

Linear projection(const Scope& s, const PositionedAttention::Options& o) {
  return {s, {.in = o.width, .out = o.width, .init = o.init}};
}

Linear queries_and_keys(const Scope& s, const PositionedAttention::Options& o) {
  return {s, {"q_proj", "k_proj"}, {.in = o.width, .out = o.width, .init = o.init}};
}

// Each head's columns of a, and those of b behind them: [rows, width] both, [rows, 2 width].
Tensor side_by_side(const Tensor& a, const Tensor& b, int64_t heads) {
  const int64_t rows = a.size(0), width = a.size(1);
  const Shape by_head{rows, heads, width / heads};
  return reshape(concat({reshape(a, by_head), reshape(b, by_head)}, 2), {rows, 2 * width});
}

// Of such the columns of a.
Tensor first_halves(const Tensor& x, int64_t heads) {
  const int64_t rows = x.size(0), width = x.size(1) / 2;
  const Tensor by_head = reshape(x, {rows, heads, 2 * width / heads});
  const Tensor copy = concat({slice(by_head, 2, 0, width / heads)}, 2);
  return reshape(copy, {rows, width});
}

}  // namespace

PositionedAttention::PositionedAttention(const Scope& s, const Options& o)
    : name_(s.prefix()),
      options_(o),
      q_(o.is_cross ? projection(s / "q_proj", o) : queries_and_keys(s, o)),
      v_(projection(s / "v_proj", o)),
      out_(projection(s / "out_proj", o)) {
  if (o.is_cross) k_.emplace(projection(s / "k_proj", o));
  if (!o.has_spatial_scores) return;
  check(o.is_cross, ErrorKind::internal, "{}: spatial scores without cross-attention", name_);
  spatial_q_.emplace(projection(s / "spatial_q_proj", o));
  spatial_k_.emplace(projection(s / "spatial_k_proj", o));
}

Tensor PositionedAttention::operator()(const Inputs& in, const Sides& sides, const Run& run,
                                       const std::shared_ptr<const Visibility>& visibility) const {
  const int64_t width = options_.width;
  const Tensor first = q_(in.queries, run);
  Tensor q = k_ ? first : slice(first, 1, 0, width);
  Tensor k = k_ ? (*k_)(in.keys, run) : slice(first, 1, width, width);
  const Tensor v = v_(in.values, run);
  Tensor wide = v;
  if (spatial_q_) {
    // Side by side in each head, as published, scores add up; a sum of both parts would multiply
    // states with positions too. Kernels take values as wide as queries: zeros stand beside them.
    q = side_by_side(q, (*spatial_q_)(in.spatial_queries, run), options_.heads);
    k = side_by_side(k, (*spatial_k_)(in.spatial_keys, run), options_.heads);
    wide = side_by_side(v, Tensor::zeros(v.shape(), v.dtype()), options_.heads);
  }
  AttentionOptions options{.heads = options_.heads, .visibility = visibility};
  options.dropout = run.dropout(options_.dropout, name_, sides.rows);
  if (run.observer != nullptr && run.observer->attention) {
    run.observer->attention(
        AttentionCall(options_.observed, q, k, *sides.queries, *sides.source, options));
  }
  const LayerName layer(name_);
  Tensor heads = attention(q, k, wide, *sides.queries, *sides.source, options);
  if (spatial_q_) heads = first_halves(heads, options_.heads);
  return project_heads(out_, options_.observed, {in.queries, v, heads}, run);
}

}  // namespace heddle::nn
