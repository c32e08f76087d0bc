// The decoder's layers, and its memory in a cache.
#include "heddle/nn/recurrent/attentive_decoder.h"

#include <cmath>

#include "heddle/ops/embedding.h"
#include "heddle/ops/shape.h"

namespace heddle::nn {
namespace {

int64_t attention_width(const AttentiveDecoder::Options& o) {
  return o.attention_width > 0 ? o.attention_width : o.width;
}

}  // namespace

std::vector<int32_t> sources_of(const Segments& tokens, const Segments& rows_of_sources) {
  std::vector<int32_t> sources;
  int32_t source = 0;
  for (int64_t i = 0; i < tokens.count(); ++i) {
    while (source + 1 < rows_of_sources.count() && rows_of_sources.end(source) <= tokens.begin(i)) {
      ++source;
    }
    sources.push_back(source);
  }
  return sources;
}

namespace {

// The state before each token. begin: that of each sequence; undefined: zeros
Tensor queries_of(const Tensor& h, const Tensor& begin, const Segments& tokens) {
  const int64_t n = tokens.count();
  std::vector<int32_t> before;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t r = tokens.begin(i); r < tokens.end(i); ++r) {
      before.push_back(static_cast<int32_t>(r == tokens.begin(i) ? i : n + r - 1));
    }
  }
  const Tensor first = begin.defined() ? begin : Tensor::zeros({n, h.size(1)}, h.dtype());
  return gather_rows(concat({first, h}, 0), before);
}

}  // namespace

AttentiveDecoder::AttentiveDecoder(const Scope& s, const Options& o)
    : name_(s.prefix()),
      options_(o),
      scoring_(scoring_of(o.scoring)),
      lowest_(s, "_l0",
              {.cell = o.cell,
               .in = o.in,
               .width = o.width,
               .bias = o.bias,
               .opens_forget_gates = o.opens_forget_gates}) {
  check(!o.compares_states || (o.memory_width == o.width && scoring_.kind == Scoring::dot),
        ErrorKind::internal,
        "{}: states {} wide and a memory {} wide are no queries and keys of {}", name_, o.width,
        o.memory_width, o.scoring);
  const int64_t gates = gates_of(o.cell) * o.width, d = attention_width(o);
  context_ = &(s / "weight_ch_l0")
                  .parameter({gates, o.memory_width},
                             Init::uniform(1 / std::sqrt(static_cast<double>(o.width))));
  context_->between_hidden_states();
  if (!o.compares_states) {
    key_.emplace(s / "key", Linear::Options{.in = o.memory_width, .out = d});
    query_ = &(s / "query" / "weight").parameter({d, o.width}, Init::xavier_uniform());
    query_->between_hidden_states();
  }
  if (o.asks_by_token) {
    token_query_.emplace(s / "token_query", Linear::Options{.in = o.in, .out = d, .bias = false});
  }
  score_ = score_parameter(s, scoring_, 1, d);
  if (o.is_gated) {
    gate_ = &(s / "gate" / "weight").parameter({1, o.width}, Init::xavier_uniform());
    gate_bias_ = &(s / "gate" / "bias").parameter({1}, Init::zeros());
  }
  if (o.layers > 1) {
    above_.emplace(s, RecurrentLayers::Options{.cell = o.cell,
                                               .in = o.width,
                                               .width = o.width,
                                               .layers = o.layers - 1,
                                               .dropout = o.dropout,
                                               .bias = o.bias,
                                               .opens_forget_gates = o.opens_forget_gates,
                                               .first = 1});
  }
}

AttentiveWeights AttentiveDecoder::weights(const Run& run) const {
  const WeightInUse context(*context_, run);
  AttentiveWeights w{
      .state = lowest_.state(run), .context = context.w, .context_constant = context.constant};
  if (query_ != nullptr) {
    const WeightInUse query(*query_, run);
    w.query = query.w, w.query_constant = query.constant;
  }
  if (score_ != nullptr) w.score = score_->in(run.compute);
  if (gate_ != nullptr) w.gate = gate_->in(run.compute), w.gate_bias = gate_bias_->in(DType::f32);
  return w;
}

AttentiveOptions AttentiveDecoder::attentive_options() const {
  return {.cell = options_.cell, .scoring = scoring_.kind, .scale = scoring_.scale};
}

AttentiveDecoder::Result AttentiveDecoder::operator()(const Tensor& x, const TokenRows& tokens,
                                                      const Source& source,
                                                      std::span<const CellState> begin,
                                                      const Run& run) const {
  const Tensor keys = keys_of(*source.memory, run), in = lowest_.input(x, run);
  AttentiveRecurrence y;
  {
    const LayerName layer(name_);
    y = attentive_recurrence(
        in, weights(run),
        {.k = keys, .v = *source.memory, .keys = source.segments, .asked = asked_by(x, run)},
        begin.empty() ? CellState() : begin[0], *tokens.segments, attentive_options());
  }
  if (run.observer != nullptr && run.observer->attention) {
    AttentionOptions options{.scale = scoring_.scale, .scoring = scoring_.kind};
    if (score_ != nullptr) options.score_weight = score_->in(run.compute);
    run.observer->attention(AttentionCall(options_.observed, y.queries, keys, *tokens.segments,
                                          *source.segments, options));
  }
  if (run.observer != nullptr && run.observer->steps) {
    Tensor asks = queries_of(y.states.h, begin.empty() ? Tensor() : begin[0].h, *tokens.segments);
    if (token_query_) asks = concat({asks, x}, 1);
    run.observer->steps(
        options_.observed,
        {.x = asks, .v = *source.memory, .heads = y.contexts, .has_projections = key_.has_value()});
  }
  return above(y, tokens, begin, run);
}

Tensor AttentiveDecoder::keys_and_values(const Tensor& memory, const Run& run) const {
  return key_ ? concat({keys_of(memory, run), memory}, 1) : memory;
}

AttentiveDecoder::Result AttentiveDecoder::operator()(const Tensor& x, const TokenRows& tokens,
                                                      const CachedSource& source,
                                                      std::span<const CellState> begin,
                                                      const Run& run) const {
  const int64_t d = attention_width(options_);
  const Tensor in = lowest_.input(x, run), kv = source.kept->rows();
  const CachedKeys own = tokens.cache->keys();
  RowCache& kept = tokens.cache->layer(0);
  const std::vector<int32_t> sources = sources_of(*own.queries, *source.keys->queries);
  const LayerName layer(name_);
  const CellState before =
      lowest_.states_before(kept, own, begin.empty() ? CellState() : begin[0], run);
  const AttentiveRecurrence y =
      attentive_recurrence(in, weights(run),
                           {.k = kv.slice(1, 0, d),
                            .v = kv.slice(1, key_ ? d : 0, options_.memory_width),
                            .keys = source.keys->keys,
                            .key_rows = source.keys->key_rows,
                            .source_of = sources,
                            .asked = asked_by(x, run)},
                           before, *own.queries, attentive_options());
  keep_states(kept, own, y.states);
  return above(y, tokens, begin, run);
}

AttentiveDecoder::Result AttentiveDecoder::above(const AttentiveRecurrence& lowest,
                                                 const TokenRows& tokens,
                                                 std::span<const CellState> begin,
                                                 const Run& run) const {
  Result result{.h = lowest.states.h,
                .contexts = lowest.contexts,
                .weights = lowest.weights,
                .gates = lowest.gates,
                .last = {lowest.states.last}};
  if (!above_) return result;
  const DropoutSpec spec = run.dropout(options_.dropout, name_ + ".l1", tokens.rows);
  RecurrentLayers::Result y =
      (*above_)(dropout(result.h, spec), tokens, begin.empty() ? begin : begin.subspan(1), run);
  result.h = y.h;
  result.last.insert(result.last.end(), y.last.begin(), y.last.end());
  return result;
}

}  // namespace heddle::nn
