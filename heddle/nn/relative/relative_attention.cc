// Projections, biases of queries, keys of a memory or a cache, sinusoids of distances; sublayers of
// each stream, layer after layer.
#include "heddle/nn/relative/relative_attention.h"

#include <algorithm>
#include <limits>

#include "heddle/nn/block.h"
#include "heddle/ops/elementwise.h"
#include "heddle/ops/embedding.h"
#include "heddle/ops/shape.h"

namespace heddle::nn {

Distances distances(int32_t farthest, int32_t nearest, int64_t clamp, int64_t width, DType dtype) {
  const auto most =
      static_cast<int32_t>(clamp > 0 ? std::min<int64_t>(clamp, std::numeric_limits<int32_t>::max())
                                     : std::numeric_limits<int32_t>::max());
  farthest = std::clamp(farthest, -most, most);
  nearest = std::clamp(nearest, -most, most);
  const Tensor table = sinusoids(farthest, -1, farthest - nearest + 1, width, {.layout = "halves"});
  return {farthest, cast(table, dtype)};
}

void drop(Distances& distances, double p, const Run& run) {
  auto ids = std::make_shared<RowIds>();
  for (int64_t t = 0; t < distances.table.size(0); ++t) {
    ids->sample.push_back(0);
    ids->position.push_back(static_cast<uint32_t>(distances.farthest - t));
  }
  distances.table = dropout(distances.table, run.dropout(p, "pos_emb", ids));
}

RelativeAttention::RelativeAttention(std::string name, Linear qkv, Linear r, Linear out,
                                     Options options)
    : name_(std::move(name)),
      qkv_(std::move(qkv)),
      r_(std::move(r)),
      out_(std::move(out)),
      options_(options) {}

std::vector<Tensor> RelativeAttention::operator()(std::span<const Tensor> x, const Tensor& before,
                                                  const RelativePass& pass, const Run& run) const {
  const Tensor own = qkv_(x[0], run);  // [tokens, 3 * heads * d]
  const int64_t inner = own.size(1) / 3;
  const Tensor kv = keys(slice(own, 1, inner, 2 * inner), before, pass, run);
  const Tensor k = slice(kv, 1, 0, inner), v = slice(kv, 1, inner, inner);
  const Tensor r = r_(pass.distances.table, run);
  std::vector<Tensor> y;
  for (size_t i = 0; i < x.size(); ++i) {
    const RelativeStream& stream = pass.streams[i];
    const Tensor q = i == 0 ? slice(own, 1, 0, inner) : qkv_.columns(x[i], 0, inner, run);
    const RelativeInputs inputs{add_bias(q, options_.content->in(DType::f32)),
                                add_bias(q, options_.distance->in(DType::f32)),
                                k,
                                v,
                                r,
                                stream.rows.query_types.empty() ? Tensor() : type_scores(q, run)};
    const std::string observed = fmt::format("{}attentions.{}", stream.prefix, options_.layer);
    const Tensor heads = attend(observed, stream, inputs, pass.distances.farthest, run);
    y.push_back(project_heads(out_, observed, {x[i], v, heads}, run));
  }
  return y;
}

Tensor RelativeAttention::attend(const std::string& observed, const RelativeStream& stream,
                                 const RelativeInputs& x, int32_t farthest, const Run& run) const {
  const LayerName layer(name_);
  const RelativeOptions options{
      .heads = options_.heads,
      .farthest = farthest,
      .dropout = run.dropout(options_.dropout, stream.prefix + name_, stream.ids)};
  if (run.observer != nullptr && run.observer->attention) {
    run.observer->attention(AttentionCall(observed, x, stream.rows, options));
  }
  return relative_attention(x, stream.rows, options);
}

Tensor RelativeAttention::keys(const Tensor& own, const Tensor& before, const RelativePass& pass,
                               const Run& run) const {
  const bool is_cached = pass.tokens.cache != nullptr;
  if (!is_cached && pass.memory.segments.rows() == 0) return own;
  const int64_t inner = own.size(1) / 2;
  const Tensor remembered = qkv_.columns(before, inner, 2 * inner, run);
  if (is_cached) return cached_keys(own, remembered, pass);
  return join_segments(remembered, pass.memory.segments, own, *pass.tokens.segments);
}

// Nothing is trained here, so rows may be written over.
Tensor RelativeAttention::cached_keys(const Tensor& own, const Tensor& before,
                                      const RelativePass& pass) const {
  RowCache& cache = pass.tokens.cache->layer(options_.layer);
  cache.put(own, pass.tokens.cache->keys().new_rows);
  std::vector<int32_t> index = pass.cache_rows;
  for (int32_t& row : index) row = std::max(row, 0);
  const Tensor all = gather_rows(cache.rows(), index);
  for (size_t i = 0; i < index.size(); ++i) {
    if (pass.cache_rows[i] >= 0) continue;
    kernels().convert(before.rows(), all.rows().slice(static_cast<int64_t>(i), 1));
  }
  return all;
}

Tensor RelativeAttention::type_scores(const Tensor& q, const Run& run) const {
  const Tensor embeddings = options_.types->in(run.compute);
  const int64_t width = q.size(1), d = width / options_.heads;
  const Tensor biased = add_bias(q, options_.type->in(DType::f32));
  std::vector<Tensor> scores;
  for (int64_t h = 0; h < options_.heads; ++h) {
    scores.push_back(linear(slice(biased, 1, h * d, d), slice(embeddings, 1, h * d, d), {}));
  }
  return cast(concat(scores, 1), DType::f32);
}

namespace {

void show(const std::vector<Tensor>& x, size_t layer, const RelativePass& pass, const Run& run) {
  if (run.observer == nullptr || !run.observer->hidden) return;
  for (size_t i = 0; i < x.size(); ++i) {
    run.observer->hidden(
        fmt::format("{}hidden_states.{}", pass.streams[i].prefix, layer * x.size() + i), x[i]);
  }
}

}  // namespace

std::vector<Tensor> RelativeLayer::operator()(std::span<const Tensor> x, const Tensor& before,
                                              const RelativePass& pass, const Run& run) const {
  std::vector<Residual> streams;
  std::vector<Tensor> entered;
  for (const Tensor& states : x) {
    streams.emplace_back(states, is_pre);
    entered.push_back(streams.back().enter(attention_norm));
  }
  const bool is_normed = is_pre && before.size(0) > 0;
  const std::vector<Tensor> attended =
      attention(entered, is_normed ? attention_norm(before) : before, pass, run);
  std::vector<Tensor> y;
  for (size_t i = 0; i < x.size(); ++i) {
    const auto& [rows, ids, prefix] = pass.streams[i];
    Residual& h = streams[i];
    h.leave(attended[i], run.dropout(dropout, prefix + site + ".attn", ids), attention_norm);
    const Tensor sub = ff(h.enter(ff_norm), ids, run, prefix);
    h.leave(sub, run.dropout(dropout, prefix + site + ".ff", ids), ff_norm);
    y.push_back(h.value());
  }
  return y;
}

std::vector<Tensor> run_relative_stack(const std::vector<RelativeLayer>& layers,
                                       std::vector<Tensor> x,
                                       const std::shared_ptr<const RelativePass>& pass,
                                       const Memory::Keep& keep, const Run& run) {
  Memory* const memory = pass->tokens.memory;
  std::vector<Tensor> entered;
  for (size_t i = 0; i < layers.size(); ++i) {
    show(x, i, *pass, run);
    if (memory != nullptr) entered.push_back(x[0]);
    const Recomputed layer = [&layer = layers[i], i, pass, run](std::span<const Tensor> in) {
      return layer(in, pass->memory.layers[i], *pass, run);
    };
    x = run.recompute && is_recording() ? recompute(x, layer) : layer(x);
  }
  show(x, layers.size(), *pass, run);
  if (memory != nullptr) *memory = pass->memory.next(entered, *pass->tokens.segments, keep);
  return x;
}

}  // namespace heddle::nn
