// Attention over fused projections, whole sequences at a time or word by word.
#include "heddle/nn/attention.h"

#include "heddle/ops/rope.h"

namespace heddle::nn {
namespace {

void observe(const Run& run, const std::string& name, const Tensor& q, const Tensor& k,
             const Segments& queries, const Segments& keys, const AttentionOptions& options) {
  if (run.observer == nullptr || !run.observer->attention) return;
  run.observer->attention(name, q.detached(), k.detached(), queries, keys, options);
}

// The output projection of the heads, or of what an observer puts in their place.
Tensor leave(const Run& run, const std::string& name, const Linear& out, const Tensor& x,
             const Tensor& v, Tensor heads) {
  const Observer* o = run.observer;
  if (o != nullptr && o->heads) heads = o->heads(name, heads);
  const Tensor output = out(heads, run);
  if (o != nullptr && o->steps) {
    o->steps(name, {x.detached(), v.detached(), heads.detached(), output.detached()});
  }
  return output;
}

// What both kinds of attention set alike.
template <class Options>
AttentionOptions options_of(const Options& o, const Run& run) {
  AttentionOptions options{.heads = o.heads, .scale = o.scale, .scoring = o.scoring};
  if (o.score != nullptr) options.score_weight = o.score->in(run.compute);
  return options;
}

}  // namespace

SelfAttention::SelfAttention(std::string name, Linear qkv, Linear out, Options options)
    : name_(std::move(name)),
      qkv_(std::move(qkv)),
      out_(std::move(out)),
      options_(std::move(options)) {}

// Queries, keys and values, turned by their places if positions are rotary.
Tensor SelfAttention::project(const Tensor& x, std::span<const int32_t> places,
                              const Run& run) const {
  const Tensor qkv = qkv_(x, run);  // [rows, 3 * width]
  if (options_.rope_theta <= 0) return qkv;
  const int64_t width = qkv.size(1) / 3;
  return rope(
      qkv, places,
      {.head_width = width / options_.heads, .columns = 2 * width, .theta = options_.rope_theta});
}

Tensor SelfAttention::operator()(const Tensor& x, const WordRows& words, const Run& run) const {
  if (words.cache != nullptr) {
    return (*this)(x, words.cache->layer(options_.layer), words.cache->keys(), run);
  }
  const bool is_rotary = options_.rope_theta > 0;
  const Tensor qkv = project(x, is_rotary ? words.positions() : std::vector<int32_t>(), run);
  const int64_t width = qkv.size(1) / 3;
  AttentionOptions options = options_of(options_, run);
  options.causal = options_.is_causal;
  options.dropout = run.dropout(options_.dropout, name_, words.rows);
  observe(run, options_.observed, qkv.slice(1, 0, width), qkv.slice(1, width, width),
          *words.segments, *words.segments, options);
  const LayerName layer(name_);
  return leave(run, options_.observed, out_, x, qkv.slice(1, 2 * width, width),
               self_attention(qkv, *words.segments, options));
}

Tensor SelfAttention::operator()(const Tensor& x, RowCache& kept, const CachedKeys& keys,
                                 const Run& run) const {
  const Tensor qkv = project(x, keys.places, run);
  const int64_t width = qkv.size(1) / 3;
  kept.put(qkv.slice(1, width, 2 * width), keys.new_rows);
  AttentionOptions options = options_of(options_, run);
  options.causal = options_.is_causal;
  options.key_rows = keys.key_rows;
  const LayerName layer(name_);
  return out_(attention(qkv.slice(1, 0, width), kept.rows().slice(1, 0, width),
                        kept.rows().slice(1, width, width), *keys.queries, *keys.keys, options),
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
  options.dropout = run.dropout(options_.dropout, name_, sides.rows);
  observe(run, options_.observed, q, memory_kv.slice(1, 0, memory_kv.size(1) / 2), *sides.queries,
          *sides.source, options);
  const LayerName layer(name_);
  return leave(run, options_.observed, out_, x,
               memory_kv.slice(1, memory_kv.size(1) / 2, memory_kv.size(1) / 2),
               cross_attention(q, memory_kv, *sides.queries, *sides.source, options));
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

}  // namespace heddle::nn
