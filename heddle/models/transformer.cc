// The encoder-decoder's layers, stacks and passes: Vaswani et al. 2017, section 3.
#include "heddle/models/transformer.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "heddle/models/family.h"
#include "heddle/ops/elementwise.h"
#include "heddle/ops/rope.h"

namespace heddle {
namespace {

using nn::CrossAttention;
using nn::FeedForward;
using nn::Positions;
using nn::Residual;
using nn::SelfAttention;

// Width of all heads together.
int64_t inner_width(const TransformerConfig& c, int64_t heads) {
  return c.head_width > 0 ? heads * c.head_width : c.d_model;
}

Linear::Options projection(const TransformerConfig& c, int64_t in, int64_t out, double gain = 1) {
  return {.in = in, .out = out, .bias = c.projection_bias, .init = Init::xavier_uniform(gain)};
}

using Bias = std::shared_ptr<const nn::BiasTable>;

// That of the first layer, which all of a stack share.
Bias relative_bias(const Scope& layers, const TransformerConfig& c, int64_t heads, bool is_causal) {
  if (c.relative_buckets == 0) return nullptr;
  const Scope s = layers / 0 / "self_attn" / "relative_attention_bias" / "weight";
  const double std = 1 / std::sqrt(static_cast<double>(c.d_model));
  return std::make_shared<const nn::BiasTable>(
      nn::BiasTable{&s.parameter({c.relative_buckets, heads}, Init::normal(std)),
                    std::make_shared<const std::vector<int32_t>>(
                        nn::relative_buckets(c.relative_buckets, c.relative_distance, is_causal))});
}

// Of the dropout of attention weights: that of the sublayer's output has the layer's name.
std::string weights_site(const Scope& attention) { return (attention / "weights").prefix(); }

// Queries, keys and values begin smaller than Xavier's rule by 1/sqrt(2), as if the three were one
// matrix: post-norm training at high rates needs it (so do PyTorch's MultiheadAttention and
// fairseq). On Multi30k at rate 5e-3 the validation loss after 9 epochs is 2.92 with it, 3.52
// without.
SelfAttention make_self_attention(const Scope& s, const TransformerConfig& c,
                                  SelfAttention::Options options) {
  options.dropout = c.attention_dropout;
  options.site = weights_site(s);
  const nn::ScoringChoice scoring = nn::scoring_of(c.attention_scoring);
  options.scoring = scoring.kind;
  options.scale = scoring.scale;
  const int64_t inner = inner_width(c, options.heads);
  options.score = nn::score_parameter(s, scoring, options.heads, inner / options.heads);
  if (c.position_embedding_type == "rotary") {
    options.rope =
        rotary_table(c.d_model / options.heads, c.max_position_embeddings, {.theta = c.rope_theta});
  }
  return {s.prefix(),
          Linear(s, {"q_proj", "k_proj", "v_proj"},
                 projection(c, c.d_model, inner, std::numbers::sqrt2 / 2)),
          Linear(s / "out_proj", projection(c, inner, c.d_model)), options};
}

CrossAttention make_cross_attention(const Scope& s, const TransformerConfig& c, int64_t layer) {
  const int64_t heads = c.decoder_attention_heads, inner = inner_width(c, heads);
  const nn::ScoringChoice scoring = nn::scoring_of(c.attention_scoring);
  return {s.prefix(),
          Linear(s / "q_proj", projection(c, c.d_model, inner)),
          Linear(s, {"k_proj", "v_proj"},
                 projection(c, c.memory_width > 0 ? c.memory_width : c.d_model, inner)),
          Linear(s / "out_proj", projection(c, inner, c.d_model)),
          {.heads = heads,
           .dropout = c.attention_dropout,
           .site = weights_site(s),
           .scale = scoring.scale,
           .scoring = scoring.kind,
           .score = nn::score_parameter(s, scoring, heads, inner / heads),
           .layer = layer,
           .observed = fmt::format("cross_attentions.{}", layer)}};
}

FeedForward make_mlp(const Scope& s, const TransformerConfig& c, int64_t hidden) {
  const bool is_swiglu = c.activation_function == "swiglu", is_gated = is_swiglu || c.is_gated;
  const Activation activation =
      is_swiglu ? Activation::silu : nn::activation_of(c.activation_function);
  const auto linear = [&](int64_t in, int64_t out) {
    return Linear::Options{.in = in, .out = out, .bias = c.mlp_bias && !is_swiglu};
  };
  Linear in = is_gated ? Linear(s, {"gate_proj", "up_proj"}, linear(c.d_model, hidden))
                       : Linear(s / "fc1", linear(c.d_model, hidden));
  return {s.prefix() + ".fc1",
          std::move(in),
          Linear(s / (is_gated ? "down_proj" : "fc2"), linear(hidden, c.d_model)),
          {activation, c.activation_dropout, is_gated}};
}

LayerNorm make_norm(const Scope& s, const TransformerConfig& c) {
  return {s, c.d_model, c.layer_norm_eps, c.normalization == "rms_norm"};
}

// Of the decoder with a look at the source.
nn::Block layer(const Scope& s, const TransformerConfig& c, int64_t i, const Bias& bias,
                bool is_decoder) {
  SelfAttention self_attn = make_self_attention(
      s / "self_attn", c,
      {.heads = is_decoder ? c.decoder_attention_heads : c.encoder_attention_heads,
       .is_causal = is_decoder,
       .bias = bias,
       .layer = i,
       .observed = fmt::format("{}_attentions.{}", is_decoder ? "decoder" : "encoder", i)});
  const LayerNorm self_attn_norm = make_norm(s / "self_attn_layer_norm", c);
  std::optional<CrossAttention> encoder_attn;
  std::optional<LayerNorm> encoder_attn_norm;
  if (is_decoder) {
    encoder_attn.emplace(make_cross_attention(s / "encoder_attn", c, i));
    encoder_attn_norm.emplace(make_norm(s / "encoder_attn_layer_norm", c));
  }
  return {.attention = std::move(self_attn),
          .attention_norm = self_attn_norm,
          .cross = std::move(encoder_attn),
          .cross_norm = encoder_attn_norm,
          .mlp = make_mlp(s, c, is_decoder ? c.decoder_ffn_dim : c.encoder_ffn_dim),
          .mlp_norm = make_norm(s / "final_layer_norm", c),
          .attention_site = s.prefix() + ".self_attn",
          .cross_site = s.prefix() + ".encoder_attn",
          .mlp_site = s.prefix() + ".fc2",
          .dropout = c.dropout};
}

// The layers of a side, which share a bias.
std::vector<nn::Block> make_side(const Scope& s, const TransformerConfig& c, bool is_decoder) {
  const Bias bias = relative_bias(
      s, c, is_decoder ? c.decoder_attention_heads : c.encoder_attention_heads, is_decoder);
  return nn::make_layers(
      s, is_decoder ? c.decoder_layers : c.encoder_layers,
      [&](const Scope& at, int64_t i) { return layer(at, c, i, bias, is_decoder); });
}

Positions positions(const Scope& s, const TransformerConfig& c) {
  if (c.position_embedding_type == "learned") {
    const int64_t rows = c.position_offset + c.max_position_embeddings;
    return Positions::learned((s / "weight").parameter({rows, c.d_model}, Init::normal(0.02)),
                              c.position_offset);
  }
  if (c.position_embedding_type == "none" || c.position_embedding_type == "rotary")
    return Positions::none();
  return Positions::sinusoidal(c.max_position_embeddings, c.d_model,
                               {c.sinusoidal_layout, c.sinusoidal_frequencies, c.position_offset});
}

// Token embedding times sqrt(d_model), plus position, then an optional norm, then dropout.
nn::Embedding token_embedding(const Scope& s, const TransformerConfig& c, nn::Parameter& table) {
  Positions added = positions(s / "embed_positions", c);
  nn::Embedding::Options options{.dropout = c.embedding_dropout};
  if (c.scale_embedding) options.scale = std::sqrt(static_cast<float>(c.d_model));
  if (c.normalize_embedding) options.norm = make_norm(s / "layernorm_embedding", c);
  return {s.prefix() + ".embed_tokens", table, std::move(added), std::move(options)};
}

nn::Parameter& token_table(const Scope& s, const TransformerConfig& c, int64_t tokens) {
  const double std = c.init_std > 0      ? c.init_std
                     : c.scale_embedding ? 1.0 / std::sqrt(static_cast<double>(c.d_model))
                                         : 0.02;
  return (s / "weight").parameter({tokens, c.d_model}, Init::normal(std, c.pad_token_id));
}

std::optional<LayerNorm> last_norm(const Scope& s, const TransformerConfig& c) {
  if (!c.normalize_before) return std::nullopt;
  return make_norm(s / "layer_norm", c);
}

const LayerNorm* pointer(const std::optional<LayerNorm>& norm) { return norm ? &*norm : nullptr; }

nn::Parameter& side_table(const Scope& s, const TransformerConfig& c, const char* side) {
  return token_table(c.share_encoder_decoder_embeddings ? s / "model" / "shared"
                                                        : s / "model" / side / "embed_tokens",
                     c, std::string_view(side) == "decoder" ? c.target_vocab_size() : c.vocab_size);
}

nn::OutputProjection output_projection(const Scope& s, const TransformerConfig& c,
                                       nn::Parameter& tied) {
  nn::Parameter& weight = c.tie_word_embeddings ? tied
                                                : (s / "lm_head" / "weight")
                                                      .parameter({c.target_vocab_size(), c.d_model},
                                                                 Init::xavier_uniform());
  if (!c.output_bias) return nn::OutputProjection(weight);
  return nn::OutputProjection(weight,
                              &(s / "final_logits_bias").parameter({1, c.target_vocab_size()}, {}));
}

EncoderDecoderFacts facts_of(const TransformerConfig& c) {
  const int64_t d = c.d_model;
  EncoderDecoderFacts facts{
      .source_vocab_size = c.vocab_size,
      .target_vocab_size = c.target_vocab_size(),
      .pad_token_id = c.pad_token_id,
      .bos_token_id = c.bos_token_id,
      .eos_token_id = c.eos_token_id,
      .decoder_start_token_id = c.decoder_start_token_id,
      .has_two_vocabularies = c.decoder_vocab_size > 0,
      .decoder_layers = c.decoder_layers,
      .cross_attention_layers = c.decoder_layers,
      .leaves_weights = nn::scoring_of(c.attention_scoring).kind == Scoring::dot,
      .encoder_attention_heads = c.encoder_attention_heads,
      .decoder_attention_heads = c.decoder_attention_heads,
      .positions = {c.position_embedding_type,
                    c.max_position_embeddings,
                    {c.sinusoidal_layout, c.sinusoidal_frequencies, c.position_offset},
                    c.rope_theta},
      .longest_source = c.max_position_embeddings,
      .cache_width = 2 * inner_width(c, c.decoder_attention_heads),
      .multiplied = c.target_vocab_size() * d +
                    c.encoder_layers * d * (4 * d + 2 * c.encoder_ffn_dim) +
                    c.decoder_layers * d * (8 * d + 2 * c.decoder_ffn_dim)};
  facts.positions.are_distances = c.relative_buckets > 0;
  if (c.position_embedding_type == "learned") facts.longest_target = c.max_position_embeddings;
  return facts;
}

// Errors: data, see check_sizes().
const TransformerConfig& checked(const TransformerConfig& c) {
  c.check_sizes("config");
  return c;
}

}  // namespace

void TransformerConfig::check_sizes(const std::string& source) const {
  for (const int64_t heads : {encoder_attention_heads, decoder_attention_heads}) {
    if (head_width == 0) check_heads(d_model, "d_model", heads, source);
  }
  heddle::check(d_model % 2 == 0 || position_embedding_type != "sinusoidal", ErrorKind::data,
                "{}: sinusoidal positions need an even d_model, not {}", source, d_model);
  for (const int64_t heads : {encoder_attention_heads, decoder_attention_heads}) {
    heddle::check(position_embedding_type != "rotary" || d_model / heads % 2 == 0, ErrorKind::data,
                  "{}: rotary positions turn pairs of columns, but heads are {} wide; choose a "
                  "d_model and heads that give an even width",
                  source, d_model / heads);
  }
  heddle::check(decoder_vocab_size == 0 || !share_encoder_decoder_embeddings, ErrorKind::data,
                "{}: decoder_vocab_size gives the target its own tokens, so its embeddings cannot "
                "be the source's; set share_encoder_decoder_embeddings to false",
                source);
}

void TransformerConfig::check(const std::string& source) const {
  check_sizes(source);
  check_token_ids(facts_of(*this), source);
}

TransformerDecoder::TransformerDecoder(const Scope& s, const TransformerConfig& c,
                                       nn::Parameter& table)
    : is_pre_(c.normalize_before),
      output_scale_(static_cast<float>(c.output_scale)),
      tokens_(token_embedding(s, c, table)),
      layers_(make_side(s / "layers", c, true)),
      norm_(last_norm(s, c)) {}

Tensor TransformerDecoder::scaled(const Tensor& h) const {
  return output_scale_ == 1 ? h : scale(h, output_scale_);
}

Tensor TransformerDecoder::decode(const TokenRows& tokens, const Tensor& memory,
                                  const Segments& source, const Run& run) const {
  const CrossAttention::Sides sides{tokens.segments, &source, tokens.rows};
  const Tensor h = run_stack(
      "decoder_", Residual(tokens_(tokens, run), is_pre_), layers_.size(), pointer(norm_), run,
      [this, tokens, run, sides](size_t i, Residual& x, std::span<const Tensor> outside) {
        const CrossAttention& cross = *layers_[i].cross;
        const Tensor kv = cross.keys_and_values(outside[0], run);
        layers_[i](
            x, tokens, [&](const Tensor& y) { return cross(y, kv, sides, run); }, run);
      },
      std::span(&memory, 1));
  return scaled(h);
}

void TransformerDecoder::add_sources(std::span<nn::RowCache> layers, const Tensor& memory,
                                     std::span<const int32_t> rows, const Run& run) const {
  for (size_t i = 0; i < layers.size(); ++i) {
    layers[i].put(layers_[i].cross->keys_and_values(memory, run), rows);
  }
}

Tensor TransformerDecoder::step(const TokenRows& tokens, std::span<const nn::RowCache> layers,
                                const nn::CachedKeys& sources, const Run& run) const {
  const Tensor h = run_stack("decoder_", Residual(tokens_(tokens, run), is_pre_), layers_.size(),
                             pointer(norm_), run, [&](size_t i, Residual& x, auto) {
                               const auto ask = [&](const Tensor& y) {
                                 return (*layers_[i].cross)(y, layers[i], sources, run);
                               };
                               layers_[i](x, tokens, ask, run);
                             });
  return scaled(h);
}

Transformer::Transformer(const Scope& s, const TransformerConfig& config, const HubConfig&)
    : EncoderDecoder(facts_of(config), config.d_model),
      c_(checked(config)),
      source_(token_embedding(s / "model" / "encoder", config, side_table(s, config, "encoder"))),
      encoder_(make_side(s / "model" / "encoder" / "layers", config, false)),
      encoder_norm_(last_norm(s / "model" / "encoder", config)),
      decoder_(s / "model" / "decoder", config, side_table(s, config, "decoder")) {
  heads_.output = output_projection(s, config, decoder_.table());
}

Tensor Transformer::encode(const ModelInput& source, const Run& run) const {
  const auto& tokens = source.as<TokenRows>();
  return run_blocks("encoder_", Residual(source_(tokens, run), c_.normalize_before), encoder_,
                    pointer(encoder_norm_), tokens, run);
}

std::unique_ptr<ModelConfig> model_config(const TransformerConfig& config) {
  auto result = std::make_unique<ConfigOf<HeddleTransformer>>();
  result->type = "heddle_transformer";
  result->hub.head = Head::target_token;
  result->own = config;
  return result;
}

template std::unique_ptr<ModelConfig> new_config<HeddleTransformer>();

}  // namespace heddle
