// The encoder-decoder's layers, stacks and passes: Vaswani et al. 2017, section 3.
#include "heddle/models/transformer.h"

#include <cmath>
#include <numbers>

#include "heddle/nn/position.h"
#include "heddle/ops/elementwise.h"
#include "heddle/ops/embedding.h"
#include "heddle/ops/matmul.h"

namespace heddle {
namespace {

using nn::Init;
using nn::LayerNorm;
using nn::Linear;
using nn::Residual;
using nn::Run;
using nn::Scope;

Activation activation_kind(const std::string& name) {
  if (name == "relu") return Activation::relu;
  if (name == "gelu") return Activation::gelu;
  if (name == "gelu_new") return Activation::gelu_new;
  return Activation::silu;
}

void observe(const Run& run, const std::string& name, Residual& x) {
  if (run.observer != nullptr && run.observer->hidden) run.observer->hidden(name, x.value());
}

void observe(const Run& run, const std::string& name, const Tensor& q, const Tensor& k,
             const Segments& queries, const Segments& keys, const AttentionOptions& options) {
  if (run.observer == nullptr || !run.observer->attention) return;
  run.observer->attention(name, q.detached(), k.detached(), queries, keys, options);
}

// Queries, keys and values begin smaller than Xavier's rule by 1/sqrt(2), as if the three were one
// matrix: post-norm training at high rates needs it (so do PyTorch's MultiheadAttention and
// fairseq). On Multi30k at rate 5e-3 the validation loss after 9 epochs is 2.92 with it, 3.52
// without.
Linear::Options projection(const TransformerConfig& c) {
  return {.in = c.d_model,
          .out = c.d_model,
          .bias = c.projection_bias,
          .init = Init::xavier_uniform(std::numbers::sqrt2 / 2)};
}

// Section 3.2.2: project, attend head by head, project again.
struct SelfAttention {
  std::string name, observed;
  Linear qkv, out;
  int64_t width, heads;
  double dropout;

  SelfAttention(const Scope& s, const TransformerConfig& c, int64_t n, std::string observed_name)
      : name(s.prefix()),
        observed(std::move(observed_name)),
        qkv(s, {"q_proj", "k_proj", "v_proj"}, projection(c)),
        out(s / "out_proj", {.in = c.d_model, .out = c.d_model, .bias = c.projection_bias}),
        width(c.d_model),
        heads(n),
        dropout(c.attention_dropout) {}

  Tensor operator()(const Tensor& x, const WordRows& words, bool is_causal, const Run& run) const {
    const Tensor y = qkv(x, run);  // [rows, 3 * width]
    const AttentionOptions options{
        .heads = heads, .causal = is_causal, .dropout = run.dropout(dropout, name, words.rows)};
    observe(run, observed, y.slice(1, 0, width), y.slice(1, width, width), *words.segments,
            *words.segments, options);
    const LayerName layer(name);
    return out(self_attention(y, *words.segments, options), run);
  }
};

struct CrossAttention {
  std::string name, observed;
  Linear q, kv, out;
  int64_t width, heads;
  double dropout;

  CrossAttention(const Scope& s, const TransformerConfig& c, std::string observed_name)
      : name(s.prefix()),
        observed(std::move(observed_name)),
        q(s / "q_proj", {.in = c.d_model, .out = c.d_model, .bias = c.projection_bias}),
        kv(s, {"k_proj", "v_proj"}, {.in = c.d_model, .out = c.d_model, .bias = c.projection_bias}),
        out(s / "out_proj", {.in = c.d_model, .out = c.d_model, .bias = c.projection_bias}),
        width(c.d_model),
        heads(c.decoder_attention_heads),
        dropout(c.attention_dropout) {}

  // memory_kv: [source rows, 2 * width]
  Tensor operator()(const Tensor& x, const Segments& queries,
                    const std::shared_ptr<const RowIds>& rows, const Tensor& memory_kv,
                    const Segments& source, const Run& run) const {
    const Tensor query = q(x, run);
    const AttentionOptions options{.heads = heads, .dropout = run.dropout(dropout, name, rows)};
    observe(run, observed, query, memory_kv.slice(1, 0, width), queries, source, options);
    const LayerName layer(name);
    return out(cross_attention(query, memory_kv, queries, source, options), run);
  }
};

// Section 3.3: activation(x W1 + b1) W2 + b2.
struct FeedForward {
  std::string name;
  Linear fc1, fc2;
  Activation kind;
  double dropout;

  FeedForward(const Scope& s, const TransformerConfig& c, int64_t hidden)
      : name(s.prefix() + ".fc1"),
        fc1(s / "fc1", {.in = c.d_model, .out = hidden}),
        fc2(s / "fc2", {.in = hidden, .out = c.d_model}),
        kind(activation_kind(c.activation_function)),
        dropout(c.activation_dropout) {}

  Tensor operator()(const Tensor& x, const std::shared_ptr<const RowIds>& rows,
                    const Run& run) const {
    const LayerName layer(name);
    return fc2(activation(kind, fc1(x, run), run.dropout(dropout, name, rows)), run);
  }
};

struct EncoderLayer {
  std::string name;
  SelfAttention self_attn;
  LayerNorm self_attn_layer_norm;
  FeedForward feed_forward;
  LayerNorm final_layer_norm;
  double dropout;

  EncoderLayer(const Scope& s, const TransformerConfig& c, int64_t i)
      : name(s.prefix()),
        self_attn(s / "self_attn", c, c.encoder_attention_heads,
                  fmt::format("encoder_attentions.{}", i)),
        self_attn_layer_norm(s / "self_attn_layer_norm", c.d_model, c.layer_norm_eps),
        feed_forward(s, c, c.encoder_ffn_dim),
        final_layer_norm(s / "final_layer_norm", c.d_model, c.layer_norm_eps),
        dropout(c.dropout) {}

  void operator()(Residual& x, const WordRows& words, const Run& run) const {
    x.leave(self_attn(x.enter(self_attn_layer_norm), words, false, run),
            run.dropout(dropout, name + ".self_attn", words.rows), self_attn_layer_norm);
    x.leave(feed_forward(x.enter(final_layer_norm), words.rows, run),
            run.dropout(dropout, name + ".fc2", words.rows), final_layer_norm);
  }
};

struct DecoderLayer {
  std::string name;
  SelfAttention self_attn;
  LayerNorm self_attn_layer_norm;
  CrossAttention encoder_attn;
  LayerNorm encoder_attn_layer_norm;
  FeedForward feed_forward;
  LayerNorm final_layer_norm;
  double dropout;

  DecoderLayer(const Scope& s, const TransformerConfig& c, int64_t i)
      : name(s.prefix()),
        self_attn(s / "self_attn", c, c.decoder_attention_heads,
                  fmt::format("decoder_attentions.{}", i)),
        self_attn_layer_norm(s / "self_attn_layer_norm", c.d_model, c.layer_norm_eps),
        encoder_attn(s / "encoder_attn", c, fmt::format("cross_attentions.{}", i)),
        encoder_attn_layer_norm(s / "encoder_attn_layer_norm", c.d_model, c.layer_norm_eps),
        feed_forward(s, c, c.decoder_ffn_dim),
        final_layer_norm(s / "final_layer_norm", c.d_model, c.layer_norm_eps),
        dropout(c.dropout) {}

  // `attend` is self-attention over whole sentences or, word by word, over a cache.
  template <class Attend>
  void operator()(Residual& x, const Attend& attend, const Segments& queries,
                  const std::shared_ptr<const RowIds>& rows, const Tensor& memory_kv,
                  const Segments& source, const Run& run) const {
    x.leave(attend(x.enter(self_attn_layer_norm)), run.dropout(dropout, name + ".self_attn", rows),
            self_attn_layer_norm);
    x.leave(encoder_attn(x.enter(encoder_attn_layer_norm), queries, rows, memory_kv, source, run),
            run.dropout(dropout, name + ".encoder_attn", rows), encoder_attn_layer_norm);
    x.leave(feed_forward(x.enter(final_layer_norm), rows, run),
            run.dropout(dropout, name + ".fc2", rows), final_layer_norm);
  }
};

// Word embedding times sqrt(d_model), plus position, then an optional norm, then dropout.
struct Embedding {
  std::string name;
  nn::Parameter* table;
  nn::Parameter* learned = nullptr;
  Tensor fixed;  // sinusoidal table, [max_position_embeddings, d_model] or longer
  std::optional<LayerNorm> norm;
  const TransformerConfig* config;

  Embedding(const Scope& s, const TransformerConfig& c, nn::Parameter& words)
      : name(s.prefix() + ".embed_tokens"), table(&words), config(&c) {
    if (c.position_embedding_type == "learned") {
      learned = &(s / "embed_positions" / "weight")
                     .parameter({c.max_position_embeddings, c.d_model}, Init::normal(0.02));
    } else if (c.position_embedding_type == "sinusoidal") {
      fixed = nn::sinusoidal_table(c.max_position_embeddings, c.d_model, options());
    }
    if (c.normalize_embedding) {
      norm.emplace(s / "layernorm_embedding", c.d_model, c.layer_norm_eps);
    }
  }

  nn::SinusoidalOptions options() const {
    return {config->sinusoidal_layout, config->sinusoidal_frequencies};
  }

  // Sinusoidal positions run on beyond the training length; learned ones end.
  Tensor positions(int64_t needed, const Run& run) const {
    if (learned != nullptr) {
      check(needed <= config->max_position_embeddings, ErrorKind::data,
            "a sentence of {} tokens is longer than the {} learned positions of the model; cut it",
            needed, config->max_position_embeddings);
      return learned->in(run.compute);
    }
    if (!fixed.defined() || needed <= fixed.size(0)) return fixed;
    return nn::sinusoidal_table(needed, config->d_model, options());
  }

  Tensor operator()(std::span<const int32_t> ids, std::span<const int32_t> place,
                    const std::shared_ptr<const RowIds>& rows, const Run& run) const {
    const LayerName layer(name);
    int64_t needed = 0;
    for (int32_t p : place) needed = std::max<int64_t>(needed, p + 1);
    const DropoutSpec spec = run.dropout(config->embedding_dropout, name, rows);
    const float factor =
        config->scale_embedding ? std::sqrt(static_cast<float>(config->d_model)) : 1.0f;
    const Tensor x = embedding(table->in(run.compute), ids, factor, positions(needed, run), place,
                               norm ? DropoutSpec{} : spec);
    return norm ? dropout((*norm)(x), spec) : x;
  }
};

template <class Layer>
std::vector<Layer> stack(const Scope& s, const TransformerConfig& c, int64_t n) {
  std::vector<Layer> layers;
  for (int64_t i = 0; i < n; ++i) layers.emplace_back(s / "layers" / i, c, i);
  return layers;
}

nn::Parameter& word_table(const Scope& s, const TransformerConfig& c) {
  const double std = c.init_std > 0      ? c.init_std
                     : c.scale_embedding ? 1.0 / std::sqrt(static_cast<double>(c.d_model))
                                         : 0.02;
  return (s / "weight").parameter({c.vocab_size, c.d_model}, Init::normal(std, c.pad_token_id));
}

std::optional<LayerNorm> last_norm(const Scope& s, const TransformerConfig& c) {
  if (!c.normalize_before) return std::nullopt;
  return LayerNorm(s / "layer_norm", c.d_model, c.layer_norm_eps);
}

std::vector<int32_t> places_of(const WordRows& words) {
  if (words.places.empty()) return words.segments->positions();
  return {words.places.begin(), words.places.end()};
}

// [n, width] to rows [used, used + n) of a [capacity, width] cache that grows by doubling.
void append(Tensor& cache, int64_t used, const Tensor& rows) {
  const int64_t n = rows.size(0), width = rows.size(1);
  if (!cache.defined() || used + n > cache.size(0)) {
    Tensor larger = Tensor::empty({std::max<int64_t>(64, 2 * (used + n)), width}, rows.dtype());
    if (used > 0) {
      kernels().convert(cache.rows().slice(0, used), larger.rows().slice(0, used));
    }
    cache = larger;
  }
  kernels().convert(rows.rows(), cache.rows().slice(used, n));
}

}  // namespace

void TransformerConfig::check(const std::string& source) const {
  for (const int64_t heads : {encoder_attention_heads, decoder_attention_heads}) {
    heddle::check(d_model % heads == 0, ErrorKind::data,
                  "{}: d_model {} is not divisible by {} heads; choose a number of heads that "
                  "divides it",
                  source, d_model, heads);
  }
  heddle::check(d_model % 2 == 0 || position_embedding_type != "sinusoidal", ErrorKind::data,
                "{}: sinusoidal positions need an even d_model, not {}", source, d_model);
  for (const int64_t id : {pad_token_id, bos_token_id, eos_token_id, decoder_start_token_id}) {
    heddle::check(id < vocab_size, ErrorKind::data,
                  "{}: the special id {} is not below vocab_size {}", source, id, vocab_size);
  }
}

struct Transformer::Parts {
  TransformerConfig config;
  Embedding source, target;
  std::vector<EncoderLayer> encoder;
  std::vector<DecoderLayer> decoder;
  std::optional<LayerNorm> encoder_norm, decoder_norm;
  nn::Parameter* output;
  nn::Parameter* bias = nullptr;

  Parts(const Scope& s, const TransformerConfig& c)
      : config(c),
        source(s / "model" / "encoder", config, word_table(table_scope(s, c, "encoder"), c)),
        target(s / "model" / "decoder", config, word_table(table_scope(s, c, "decoder"), c)),
        encoder(stack<EncoderLayer>(s / "model" / "encoder", c, c.encoder_layers)),
        decoder(stack<DecoderLayer>(s / "model" / "decoder", c, c.decoder_layers)),
        encoder_norm(last_norm(s / "model" / "encoder", c)),
        decoder_norm(last_norm(s / "model" / "decoder", c)),
        output(c.tie_word_embeddings
                   ? target.table
                   : &(s / "lm_head" / "weight")
                          .parameter({c.vocab_size, c.d_model}, Init::xavier_uniform())) {
    if (c.output_bias) bias = &(s / "final_logits_bias").parameter({1, c.vocab_size}, {});
  }

  static Scope table_scope(const Scope& s, const TransformerConfig& c, const char* side) {
    return c.share_encoder_decoder_embeddings ? s / "model" / "shared"
                                              : s / "model" / side / "embed_tokens";
  }
};

Transformer::Transformer(const Scope& s, const TransformerConfig& config) {
  config.check("config");
  parts_ = std::make_unique<Parts>(s, config);
}
Transformer::~Transformer() = default;
Transformer::Transformer(Transformer&&) noexcept = default;

const TransformerConfig& Transformer::config() const { return parts_->config; }

Tensor Transformer::encode(const WordRows& words, const Run& run) const {
  const Parts& p = *parts_;
  Residual x(p.source(words.ids, places_of(words), words.rows, run), p.config.normalize_before);
  observe(run, "encoder_hidden_states.0", x);
  for (size_t i = 0; i < p.encoder.size(); ++i) {
    p.encoder[i](x, words, run);
    if (i + 1 < p.encoder.size()) observe(run, fmt::format("encoder_hidden_states.{}", i + 1), x);
  }
  const Tensor h = p.encoder_norm ? x.enter(*p.encoder_norm) : x.value();
  Residual last(h, false);
  observe(run, fmt::format("encoder_hidden_states.{}", p.encoder.size()), last);
  return h;  // [s, d_model]
}

Tensor Transformer::decode(const WordRows& words, const Tensor& memory, const Segments& source,
                           const Run& run) const {
  const Parts& p = *parts_;
  Residual x(p.target(words.ids, places_of(words), words.rows, run), p.config.normalize_before);
  observe(run, "decoder_hidden_states.0", x);
  for (size_t i = 0; i < p.decoder.size(); ++i) {
    const DecoderLayer& layer = p.decoder[i];
    const auto attend = [&](const Tensor& y) { return layer.self_attn(y, words, true, run); };
    layer(x, attend, *words.segments, words.rows, layer.encoder_attn.kv(memory, run), source, run);
    if (i + 1 < p.decoder.size()) observe(run, fmt::format("decoder_hidden_states.{}", i + 1), x);
  }
  const Tensor h = p.decoder_norm ? x.enter(*p.decoder_norm) : x.value();
  Residual last(h, false);
  observe(run, fmt::format("decoder_hidden_states.{}", p.decoder.size()), last);
  return h;  // [t, d_model]
}

Tensor Transformer::output_weight(const Run& run) const { return parts_->output->in(run.compute); }

Tensor Transformer::output_bias() const {
  if (parts_->bias == nullptr) return {};
  const Tensor b = parts_->bias->in(DType::f32);
  return b.view({parts_->config.vocab_size}).with_leaf(b.leaf());
}

Tensor Transformer::logits(const Tensor& h, const Run& run) const {
  const LayerName layer(parts_->output->name());
  if (is_recording()) return linear(h, output_weight(run), output_bias());
  const Tensor weight = output_weight(run), bias = output_bias();
  Tensor y = Tensor::empty({h.size(0), weight.size(0)}, DType::f32);
  kernels().gemm({.a = h.rows(),
                  .b = weight.rows(),
                  .c = y.rows(),
                  .bias = bias.defined() ? bias.data<float>() : nullptr,
                  .transpose_b = true,
                  .constant_b = parts_->output->identity()});
  return y;
}

DecoderCache Transformer::start(const Tensor& memory, const Segments& source,
                                const Run& run) const {
  DecoderCache cache;
  for (const DecoderLayer& layer : parts_->decoder) {
    cache.layers.push_back({Tensor(), layer.encoder_attn.kv(memory, run)});
  }
  cache.source = source;
  return cache;
}

Tensor Transformer::step(DecoderCache& cache, const DecoderStep& step, const Run& run) const {
  const Parts& p = *parts_;
  const auto n = static_cast<int64_t>(step.ids.size());
  const int64_t d = p.config.d_model;
  const std::vector<int32_t> place(n, static_cast<int32_t>(step.position));
  const Segments one_each = Segments::uniform(n, 1);
  const Segments keys = Segments::uniform(n, step.position + 1);
  Residual x(p.target(step.ids, place, nullptr, run), p.config.normalize_before);
  for (size_t i = 0; i < p.decoder.size(); ++i) {
    const DecoderLayer& layer = p.decoder[i];
    LayerCache& kept = cache.layers[i];
    const auto attend = [&](const Tensor& y) {
      const Tensor qkv = layer.self_attn.qkv(y, run);
      append(kept.self, cache.used, qkv.slice(1, d, 2 * d));
      const Tensor a =
          attention(qkv.slice(1, 0, d), kept.self.slice(1, 0, d), kept.self.slice(1, d, d),
                    one_each, keys, {.heads = layer.self_attn.heads, .key_rows = step.key_rows});
      return layer.self_attn.out(a, run);
    };
    layer(x, attend, step.beams, nullptr, kept.cross, cache.source, run);
  }
  cache.used += n;
  return p.decoder_norm ? x.enter(*p.decoder_norm) : x.value();
}

}  // namespace heddle
