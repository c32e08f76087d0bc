// BERT: Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional Transformers".
#pragma once

#include <memory>

#include "heddle/models/model.h"
#include "heddle/nn/mlp.h"

namespace heddle {

/// Hugging Face's keys; the defaults are BERT base.
struct BertConfig {
  int64_t vocab_size = 30522, max_position_embeddings = 512, type_vocab_size = 2;
  int64_t hidden_size = 768, num_hidden_layers = 12, num_attention_heads = 12;
  int64_t intermediate_size = 3072;
  std::string hidden_act = "gelu", position_embedding_type = "absolute";
  double hidden_dropout_prob = 0.1, attention_probs_dropout_prob = 0.1;
  double layer_norm_eps = 1e-12, initializer_range = 0.02;
  int64_t pad_token_id = 0;
  bool is_decoder = false, add_cross_attention = false;

  template <class V>
  void fields(V& v) {
    v("vocab_size", vocab_size, "words known to the tokenizer", at_least(1));
    v("max_position_embeddings", max_position_embeddings, "longest sequence in tokens",
      at_least(1));
    v("type_vocab_size", type_vocab_size, "token types: parts of a pair", at_least(1));
    v("hidden_size", hidden_size, "width of the residual stream", at_least(1));
    v("num_hidden_layers", num_hidden_layers, "number of blocks", at_least(1));
    v("num_attention_heads", num_attention_heads, "heads; must divide hidden_size", at_least(1));
    v("intermediate_size", intermediate_size, "width inside the feed-forward layers", at_least(1));
    v("hidden_act", hidden_act, "of the feed-forward layers", one_of(nn::activation_names()));
    v("position_embedding_type", position_embedding_type, "learned positions, added to words",
      one_of({"absolute"}));
    v("hidden_dropout_prob", hidden_dropout_prob, "dropout of embeddings and sublayers",
      from_below(0, 1));
    v("attention_probs_dropout_prob", attention_probs_dropout_prob,
      "dropout of the attention weights", from_below(0, 1));
    v("layer_norm_eps", layer_norm_eps, "inside the root of each norm", above(0));
    v("initializer_range", initializer_range, "deviation of the weights at the start", at_least(0));
    v("pad_token_id", pad_token_id, "the padding word");
    v("is_decoder", is_decoder, "not supported: must be false");
    v("add_cross_attention", add_cross_attention, "not supported: must be false");
  }
  /// Errors: data, naming `source`, for fields that do not fit together.
  void check(const std::string& source) const;
};

class Bert : public Model {
 public:
  using Config = BertConfig;
  /// Makes or finds the parameters under `s`. Errors: data if the config does not fit together.
  Bert(const nn::Scope& s, const Config& config);
  ~Bert() override;

  const Config& config() const;
  std::vector<Field> fields() const override { return fields_of(config()); }
  nn::TensorNames names() const override;
  int64_t vocab_size() const override { return config().vocab_size; }
  /// The last layer's states: [rows, hidden_size].
  Tensor encode(const nn::WordRows& words, const nn::Run& run) const;
  /// tanh of a linear layer over the first word of each sequence.
  /// h: [rows, hidden_size]    returns: [sequences, hidden_size]
  /// Errors: shape if a sequence is empty.
  Tensor pool(const Tensor& h, const Segments& segments, const nn::Run& run) const;
  /// last_hidden_state and pooler_output.
  std::vector<ModelOutput> forward(const nn::WordRows& words, const nn::Run& run) const override;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace heddle
