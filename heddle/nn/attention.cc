// Attention over fused projections, whole sequences at a time or token by token; attention by any
// scores.
#include "heddle/nn/attention.h"

#include "heddle/ops/embedding.h"
#include "heddle/ops/shape.h"

namespace heddle::nn {
namespace {

void observe(const Run& run, const std::string& name, const Tensor& q, const Tensor& k,
             const Segments& queries, const Segments& keys, const AttentionOptions& options) {
  if (run.observer == nullptr || !run.observer->attention) return;
  run.observer->attention(AttentionCall(name, q, k, queries, keys, options));
}

AttentionOptions options_of(const SelfAttention::Options& o, const Run& run) {
  AttentionOptions options{.heads = o.heads,
                           .key_heads = o.key_heads,
                           .causal = o.is_causal,
                           .scale = o.scale,
                           .scoring = o.scoring};
  if (o.score != nullptr) options.score_weight = o.score->in(run.compute);
  if (o.bias) options.bias = {o.bias->table->in(DType::f32), o.bias->buckets, o.bias->codes};
  return options;
}

DropoutSpec weights_dropout(const SelfAttention::Options& o, const std::string& name,
                            const std::shared_ptr<const RowIds>& rows, const Run& run) {
  return run.dropout(o.dropout, o.site.empty() ? name : o.site, rows);
}

// qkv with a norm over each head's queries and each head's keys. d: width of a head
Tensor norm_heads(const SelfAttention::Options& o, const Tensor& qkv, int64_t queries, int64_t keys,
                  int64_t d) {
  const int64_t rows = qkv.size(0);
  const auto part = [&](const LayerNorm& norm, int64_t first, int64_t width) {
    const Tensor heads = reshape(concat({slice(qkv, 1, first, width)}, 1), {rows * width / d, d});
    return reshape(norm(heads), {rows, width});
  };
  return concat({part(*o.query_norm, 0, queries), part(*o.key_norm, queries, keys),
                 slice(qkv, 1, queries + keys, keys)},
                1);
}

// Whether a query stands so far behind a key of its sequence that a window could hide it.
bool exceeds(const Segments& queries, const Segments& keys, std::span<const int32_t> at,
             std::span<const int32_t> of, int64_t window) {
  for (int64_t s = 0; s < queries.count() && window > 0; ++s) {
    if (queries.length(s) == 0 || keys.length(s) == 0) continue;
    if (at[queries.end(s) - 1] - of[keys.begin(s)] >= window) return true;
  }
  return false;
}

// `at` and `of`: positions of queries and of keys. returns: null where `is_causal` says it all
std::shared_ptr<const Visibility> visibility(const SelfAttention::Options& o,
                                             const Segments& queries, const Segments& keys,
                                             std::span<const int32_t> at,
                                             std::span<const int32_t> of,
                                             std::span<const uint8_t> unseen) {
  const bool is_windowed = exceeds(queries, keys, at, of, o.window);
  if (!is_windowed && unseen.empty()) return nullptr;
  Visibility v = visibility_of(queries, keys, o.is_causal);
  if (is_windowed) keep_window(v, queries, keys, at, of, o.window);
  if (!unseen.empty()) hide_keys(v, keys, unseen);
  return std::make_shared<const Visibility>(std::move(v));
}

}  // namespace

SelfAttention::SelfAttention(std::string name, Linear qkv, Linear out, Options options)
    : name_(std::move(name)),
      qkv_(std::move(qkv)),
      out_(std::move(out)),
      options_(std::move(options)) {}

// Queries, keys and values, turned by their positions if positions are rotary.
SelfAttention::Projected SelfAttention::project(const Tensor& x, std::span<const int32_t> positions,
                                                const Run& run) const {
  Tensor qkv = qkv_(x, run);  // [rows, (heads + 2 * key_heads) * d]
  const int64_t heads = options_.heads;
  const int64_t key_heads = options_.key_heads > 0 ? options_.key_heads : heads;
  const int64_t d = qkv.size(1) / (heads + 2 * key_heads);
  if (options_.query_norm) qkv = norm_heads(options_, qkv, heads * d, key_heads * d, d);
  if (options_.rope == nullptr) return {qkv, heads * d, key_heads * d};
  return {rope(qkv, positions,
               {.head_width = d, .columns = (heads + key_heads) * d, .table = options_.rope}),
          heads * d, key_heads * d};
}

Tensor SelfAttention::operator()(const Tensor& x, const TokenRows& tokens, const Run& run) const {
  if (tokens.cache != nullptr) return continued(x, tokens, run);
  const bool needs_positions = options_.rope != nullptr || options_.window > 0;
  const std::vector<int32_t> positions =
      needs_positions ? tokens.positions() : std::vector<int32_t>();
  const auto [qkv, d, e] = project(x, positions, run);
  AttentionOptions options = options_of(options_, run);
  options.dropout = weights_dropout(options_, name_, tokens.rows, run);
  options.visibility = tokens.visibility != nullptr
                           ? tokens.visibility
                           : visibility(options_, *tokens.segments, *tokens.segments, positions,
                                        positions, tokens.unseen);
  observe(run, options_.observed, qkv.slice(1, 0, d), qkv.slice(1, d, e), *tokens.segments,
          *tokens.segments, options);
  const LayerName layer(name_);
  const Tensor heads = self_attention(qkv, *tokens.segments, options);
  return project_heads(out_, options_.observed, {x, qkv.slice(1, d + e, e), heads}, run);
}

// All tokens leave keys and values; those that are asked for look at them.
Tensor SelfAttention::continued(const Tensor& x, const TokenRows& tokens, const Run& run) const {
  const CachedKeys keys = tokens.cache->keys();
  RowCache& kept = tokens.cache->layer(options_.layer);
  const auto [qkv, d, e] = project(x, keys.position_ids, run);
  kept.put(qkv.slice(1, d, 2 * e), keys.new_rows);
  AttentionOptions options = options_of(options_, run);
  const LayerName layer(name_);
  options.key_rows = keys.key_rows;
  Tensor q = qkv.slice(1, 0, d);
  Segments queries = *keys.queries;
  std::vector<int32_t> positions(keys.position_ids.begin(), keys.position_ids.end());
  if (!tokens.answers.empty()) {
    const std::vector<int32_t> rows = tokens.answering();
    q = gather_rows(q, rows);
    queries = Segments::from_lengths(tokens.answers);
    positions.clear();
    for (const int32_t row : rows) positions.push_back(keys.position_ids[row]);
  }
  if (options_.window > 0 && keys.keys->max_length() > options_.window) {
    options.visibility =
        visibility(options_, queries, *keys.keys, positions, keys.keys->positions(), {});
  }
  return out_(attention(q, kept.rows().slice(1, 0, e), kept.rows().slice(1, e, e), queries,
                        *keys.keys, options),
              run);
}

CrossAttention::CrossAttention(std::string name, Linear q, Linear kv, Linear out, Options options)
    : name_(std::move(name)),
      q_(std::move(q)),
      kv_(std::move(kv)),
      out_(std::move(out)),
      options_(std::move(options)) {}

Tensor CrossAttention::operator()(const Tensor& x, const Tensor& memory_kv, const Sides& sides,
                                  const Run& run) const {
  const Tensor q = q_(x, run);
  AttentionOptions options = options_of(options_, run);
  options.dropout = weights_dropout(options_, name_, sides.rows, run);
  observe(run, options_.observed, q, memory_kv.slice(1, 0, memory_kv.size(1) / 2), *sides.queries,
          *sides.source, options);
  const LayerName layer(name_);
  if (run.source_weights != nullptr && run.weights_layer == options_.layer) {
    run.source_weights->push_back(mean_attention_weights(
        q, slice(memory_kv, 1, 0, memory_kv.size(1) / 2), *sides.queries, *sides.source, options));
  }
  const Tensor v = memory_kv.slice(1, memory_kv.size(1) / 2, memory_kv.size(1) / 2);
  const Tensor heads = cross_attention(q, memory_kv, *sides.queries, *sides.source, options);
  return project_heads(out_, options_.observed, {x, v, heads}, run);
}

Tensor CrossAttention::operator()(const Tensor& x, const RowCache& kept, const CachedKeys& keys,
                                  const Run& run) const {
  const Tensor q = q_(x, run);
  const int64_t width = q.size(1);
  AttentionOptions options = options_of(options_, run);
  options.key_rows = keys.key_rows;
  const LayerName layer(name_);
  return out_(attention(q, kept.rows().slice(1, 0, width), kept.rows().slice(1, width, width),
                        *keys.queries, *keys.keys, options),
              run);
}

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
