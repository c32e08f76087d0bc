// The encoder-decoder of Vaswani et al. 2017, "Attention Is All You Need".
#pragma once

#include <memory>

#include "heddle/models/encoder_decoder.h"
#include "heddle/nn/block.h"

namespace heddle {

/// Its fields, under Marian's names where it has them.
struct TransformerConfig {
  int64_t vocab_size = 10000;
  int64_t d_model = 512;
  int64_t encoder_layers = 6, decoder_layers = 6;
  int64_t encoder_attention_heads = 8, decoder_attention_heads = 8;
  int64_t encoder_ffn_dim = 2048, decoder_ffn_dim = 2048;
  std::string activation_function = "relu";
  double dropout = 0.1, embedding_dropout = 0.1, attention_dropout = 0.0, activation_dropout = 0.0;
  bool normalize_before = false, normalize_embedding = false;
  std::string normalization = "layer_norm";
  double layer_norm_eps = 1e-5;
  bool projection_bias = true, output_bias = false;
  std::string attention_scoring = "scaled_dot";
  std::string position_embedding_type = "sinusoidal", sinusoidal_layout = "interleaved",
              sinusoidal_frequencies = "paper";
  double rope_theta = 10000;
  int64_t max_position_embeddings = 512;
  int64_t decoder_vocab_size = 0;
  bool scale_embedding = true, share_encoder_decoder_embeddings = true, tie_word_embeddings = true;
  double init_std = 0;
  int64_t pad_token_id = 0, bos_token_id = 2, eos_token_id = 3, decoder_start_token_id = 2;

  // What families of others have, and no field says.
  int64_t position_offset = 0;  ///< rows of the table of positions before that of position 0
  int64_t head_width = 0;       ///< 0: d_model / heads
  bool is_gated = false;        ///< the activation is that of gates
  bool mlp_bias = true;         ///< biases in the feed-forward layers
  int64_t relative_buckets = 0, relative_distance = 0;  ///< see relative_buckets(); 0: no bias
  double output_scale = 1;                              ///< of the decoder's states
  int64_t memory_width = 0;  ///< of the rows that the decoder asks; 0: d_model

  template <class V>
  void fields(V& v) {
    v("vocab_size", vocab_size, "tokens of the joint vocabulary, or of the source's",
      between(1, kMostVocabulary));
    v("decoder_vocab_size", decoder_vocab_size,
      "tokens of the target's own vocabulary; 0: one vocabulary for both",
      between(0, kMostVocabulary));
    v("d_model", d_model, "width of the residual stream", between(1, kMostWidth));
    v("encoder_layers", encoder_layers, "blocks of the encoder", between(1, kMostLayers));
    v("decoder_layers", decoder_layers, "blocks of the decoder", between(1, kMostLayers));
    v("encoder_attention_heads", encoder_attention_heads, "heads; must divide d_model",
      between(1, kMostHeads));
    v("decoder_attention_heads", decoder_attention_heads, "heads; must divide d_model",
      between(1, kMostHeads));
    v("encoder_ffn_dim", encoder_ffn_dim, "width inside the encoder's feed-forward layers",
      between(1, kMostWidth));
    v("decoder_ffn_dim", decoder_ffn_dim, "width inside the decoder's feed-forward layers",
      between(1, kMostWidth));
    v("activation_function", activation_function, "of the feed-forward layers",
      one_of({"relu", "gelu", "gelu_new", "silu", "swish", "swiglu"}));
    v("dropout", dropout, "of each sublayer's output", from_below(0, 1));
    v("embedding_dropout", embedding_dropout, "of the sum of embedding and position",
      from_below(0, 1));
    v("attention_dropout", attention_dropout, "of the attention weights", from_below(0, 1));
    v("activation_dropout", activation_dropout, "in the middle of the feed-forward layers",
      from_below(0, 1));
    v("normalize_before", normalize_before,
      "pre-norm x + Sub(LN(x)) with a last norm, instead of post-norm LN(x + Sub(x))");
    v("normalize_embedding", normalize_embedding, "a norm after the embeddings");
    v("normalization", normalization,
      "of each norm: with mean and bias, or x / sqrt(mean x^2) alone",
      one_of({"layer_norm", "rms_norm"}));
    v("layer_norm_eps", layer_norm_eps, "inside the root of each norm", above(0));
    v("projection_bias", projection_bias, "biases in the attention projections");
    v("attention_scoring", attention_scoring,
      "of queries and keys: q k / sqrt(d), q k, v tanh(q + k), or one linear layer over [q; k]",
      one_of({"scaled_dot", "dot", "additive", "linear"}));
    v("output_bias", output_bias, "a bias on the logits (final_logits_bias)");
    v("position_embedding_type", position_embedding_type, "what tells positions apart",
      one_of({"sinusoidal", "learned", "rotary", "none"}));
    v("rope_theta", rope_theta, "base of the frequencies of rotary positions", above(1));
    v("sinusoidal_layout", sinusoidal_layout, "sines and cosines in turn, or in two halves",
      one_of({"interleaved", "halves"}));
    v("sinusoidal_frequencies", sinusoidal_frequencies, "exponents 2i/d, or i/(d/2 - 1)",
      one_of({"paper", "tensor2tensor"}));
    // Beyond any sentence.
    v("max_position_embeddings", max_position_embeddings,
      "longest sequence in tokens, the end included", between(1, 1 << 24));
    v("scale_embedding", scale_embedding, "multiply embeddings by sqrt(d_model)");
    v("share_encoder_decoder_embeddings", share_encoder_decoder_embeddings,
      "source and target embeddings are one matrix");
    v("tie_word_embeddings", tie_word_embeddings, "target embeddings are the output projection");
    v("init_std", init_std, "of the embeddings at the start; 0: d_model^-0.5 if scaled, else 0.02",
      at_least(0));
    v("pad_token_id", pad_token_id, "the padding token", at_least(0));
    v("bos_token_id", bos_token_id, "the token of a beginning", at_least(0));
    v("eos_token_id", eos_token_id, "the token that ends a sentence", at_least(0));
    v("decoder_start_token_id", decoder_start_token_id, "the first token given to the decoder",
      at_least(0));
  }

  /// Sizes of encoder and decoder alike: blocks, width, width inside the feed-forward layers,
  /// heads.
  void set_sizes(int64_t layers, int64_t width, int64_t hidden, int64_t heads) {
    encoder_layers = decoder_layers = layers;
    d_model = width;
    encoder_ffn_dim = decoder_ffn_dim = hidden;
    encoder_attention_heads = decoder_attention_heads = heads;
  }

  /// Tokens that a translation is made of.
  int64_t target_vocab_size() const {
    return decoder_vocab_size > 0 ? decoder_vocab_size : vocab_size;
  }

  /// Checks what no single field can: check_sizes(), and that the special ids are tokens.
  /// Errors: data, naming `source`.
  void check(const std::string& source) const;
  /// Checks that sizes fit together, such as that heads divide the width. Errors: as above.
  void check_sizes(const std::string& source) const;
};

/// Of so many decoder layers the one whose maps lie closest to what tokens stand for: the last but
/// one in deep models, else the last. Source: Garg et al. 2019, "Jointly Learning to Align and
/// Translate", section 4.1.
inline int64_t aligning_layer(int64_t layers) { return layers - (layers <= 4 ? 1 : 2); }

/// Its decoder: embeddings, blocks that ask a memory, the last norm. Sections 3.1 and 3.4.
class TransformerDecoder {
 public:
  /// Parameters under `s`: embed_positions, layernorm_embedding, layers, layer_norm. Of the config
  /// what is not the encoder's counts. table: of its tokens
  TransformerDecoder(const nn::Scope& s, const TransformerConfig& config, nn::Parameter& table);

  nn::Parameter& table() const { return tokens_.table(); }
  /// See EncoderDecoder::decode(), add_sources() and step().
  Tensor decode(const nn::TokenRows& target, const Tensor& memory, const Segments& source,
                const nn::Run& run) const;
  void add_sources(std::span<nn::RowCache> layers, const Tensor& memory,
                   std::span<const int32_t> rows, const nn::Run& run) const;
  Tensor step(const nn::TokenRows& target, std::span<const nn::RowCache> layers,
              const nn::CachedKeys& sources, const nn::Run& run) const;

 private:
  /// States as the output projection is given them.
  Tensor scaled(const Tensor& h) const;

  bool is_pre_;
  float output_scale_;
  nn::Embedding tokens_;
  std::vector<nn::Block> layers_;
  std::optional<nn::LayerNorm> norm_;
};

class Transformer : public EncoderDecoder {
 public:
  /// Makes or finds the parameters under `s`. Errors: data if the sizes do not fit together.
  Transformer(const nn::Scope& s, const TransformerConfig& config, const HubConfig& hub = {});

  /// Of a family over it, that of the heddle_transformer that computes the same.
  const TransformerConfig& transformer_config() const { return c_; }
  Tensor encode(const ModelInput& source, const nn::Run& run) const override;
  Tensor decode(const nn::TokenRows& target, const Tensor& memory, const Segments& source,
                const nn::Run& run) const override {
    return decoder_.decode(target, memory, source, run);
  }
  void add_sources(std::span<nn::RowCache> layers, const Tensor& memory, const Segments&,
                   std::span<const int32_t> rows, const nn::Run& run) const override {
    decoder_.add_sources(layers, memory, rows, run);
  }
  Tensor step(const nn::TokenRows& target, std::span<const nn::RowCache> layers,
              const nn::CachedKeys& sources, const nn::Run& run) const override {
    return decoder_.step(target, layers, sources, run);
  }

  nn::TensorNames names() const override { return {}; }

 private:
  TransformerConfig c_;
  nn::Embedding source_;
  std::vector<nn::Block> encoder_;
  std::optional<nn::LayerNorm> encoder_norm_;
  TransformerDecoder decoder_;
};

/// The family of heddle's own format: what a config says, and no other name.
class HeddleTransformer final : public Transformer, public WithHubModel {
 public:
  using Config = TransformerConfig;
  static HubFamily family() {
    return {.heads = {{Head::target_token, "HeddleTransformer"}}, .is_own_format = true};
  }
  using Transformer::Transformer;

  /// A marian, see families/marian.cc.
  std::unique_ptr<Model> hub_model(const nn::Parameters& own, nn::Parameters& theirs,
                                   const std::string& source) const override;
};

/// A config of that family.
std::unique_ptr<ModelConfig> model_config(const TransformerConfig& config);

}  // namespace heddle
