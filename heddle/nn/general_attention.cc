// Projections around attention by any scores.
#include "heddle/nn/general_attention.h"

#include "heddle/ops/shape.h"

namespace heddle::nn {

int64_t ScoringChoice::weights(int64_t d) const {
  return kind == Scoring::dot ? 0 : kind == Scoring::linear ? 2 * d : d;
}

ScoringChoice scoring_of(const std::string& name) {
  if (name == "scaled_dot") return {Scoring::dot, 0};
  if (name == "dot") return {Scoring::dot, 1};
  if (name == "additive") return {Scoring::additive, 0};
  if (name == "linear") return {Scoring::linear, 0};
  fail(ErrorKind::data, "scoring '{}' is unknown; heddle has {}", name,
       fmt::join(scoring_names(), ", "));
}

std::vector<std::string> scoring_names() { return {"scaled_dot", "dot", "additive", "linear"}; }

Parameter* score_parameter(const Scope& s, const ScoringChoice& scoring, int64_t heads, int64_t d) {
  const int64_t n = scoring.weights(d);
  if (n == 0) return nullptr;
  return &(s / "score" / "weight").parameter({heads, n}, Init::xavier_uniform());
}

GeneralAttention::GeneralAttention(const Scope& s, const Options& o)
    : q_(s / "q_proj", {.in = o.query_width, .out = o.heads * o.head_width, .bias = o.bias}),
      k_(s / "k_proj", {.in = o.key_width, .out = o.heads * o.head_width, .bias = o.bias}),
      v_(s / "v_proj", {.in = o.value_width, .out = o.heads * o.head_width, .bias = o.bias}),
      out_(s / "out_proj", {.in = o.heads * o.head_width,
                            .out = o.out_width > 0 ? o.out_width : o.query_width,
                            .bias = o.bias}),
      score_(score_parameter(s, scoring_of(o.scoring), o.heads, o.head_width)),
      scoring_(scoring_of(o.scoring)),
      heads_(o.heads) {}

Tensor GeneralAttention::operator()(const Tensor& queries, const Tensor& keys, const Tensor& values,
                                    std::span<const uint8_t> mask, const Run& run) const {
  check(keys.size(0) == values.size(0), ErrorKind::shape,
        "attention: keys are {} but values {}; each key needs its value", keys.shape(),
        values.shape());
  const Tensor q = q_(queries, run), k = k_(keys, run), v = v_(values, run);
  AttentionOptions options{
      .heads = heads_, .scale = scoring_.scale, .scoring = scoring_.kind, .score_weight = {}};
  if (score_ != nullptr) options.score_weight = score_->in(run.compute);
  if (mask.empty()) {
    return out_(attention(q, k, v, Segments::uniform(1, q.size(0)), Segments::uniform(1, k.size(0)),
                          options),
                run);
  }
  const int64_t d = q.size(1) / heads_;
  std::vector<Tensor> heads;
  for (int64_t h = 0; h < heads_; ++h) {
    const auto part = [&](const Tensor& x) { return slice(x, 1, h * d, d); };
    heads.push_back(attend(head_scores(part(q), part(k), options, h), part(v), mask));
  }
  return out_(concat(heads, 1), run);
}

}  // namespace heddle::nn
