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

}  // namespace

PositionedAttention::PositionedAttention(const Scope& s, const Options& o)
    : name_(s.prefix()),
      options_(o),
      q_(o.is_cross ? projection(s / "q_proj", o) : queries_and_keys(s, o)),
      v_(projection(s / "v_proj", o)),
      out_(projection(s / "out_proj", o)) {
  if (o.is_cross) k_.emplace(projection(s / "k_proj", o));
}

Tensor PositionedAttention::operator()(const Inputs& in, const Sides& sides, const Run& run,
                                       const std::shared_ptr<const Visibility>& visibility) const {
  const int64_t width = options_.width;
  const Tensor first = q_(in.queries, run);
  const Tensor q = k_ ? first : slice(first, 1, 0, width);
  const Tensor k = k_ ? (*k_)(in.keys, run) : slice(first, 1, width, width);
  const Tensor v = v_(in.values, run);
  AttentionOptions options{.heads = options_.heads, .visibility = visibility};
  options.dropout = run.dropout(options_.dropout, name_, sides.rows);
  if (run.observer != nullptr && run.observer->attention) {
    run.observer->attention(
        AttentionCall(options_.observed, q, k, *sides.queries, *sides.source, options));
  }
  const LayerName layer(name_);
  const Tensor heads = attention(q, k, v, *sides.queries, *sides.source, options);
  return project_heads(out_, options_.observed, {in.queries, v, heads}, run);
}

}  // namespace heddle::nn
