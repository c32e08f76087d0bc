// The post-norm encoder of BERT and its kin: Vaswani et al. 2017 with learned positions.
#pragma once

#include <array>

#include "heddle/models/family.h"
#include "heddle/nn/block.h"

namespace heddle {

/// The keys under which a family has the fields of the kin; the defaults are BERT's.
struct EncoderKeys {
  const char* width = "hidden_size";
  const char* layers = "num_hidden_layers";
  const char* heads = "num_attention_heads";
  const char* hidden = "intermediate_size";
  const char* activation = "hidden_act";
  const char* dropout = "hidden_dropout_prob";
  const char* attention_dropout = "attention_probs_dropout_prob";
};

/// Fields that the kin share; the defaults are BERT base.
struct EncoderFields {
  int64_t vocab_size = 30522, max_position_embeddings = 512;
  int64_t type_vocab_size = 0;  ///< a field of BERT; 0: no token types
  int64_t width = 768, layers = 12, heads = 12, hidden = 3072;
  std::string activation = "gelu";
  double dropout = 0.1, attention_dropout = 0.1;
  double layer_norm_eps = 1e-12;  ///< a field of BERT
  double initializer_range = 0.02;
  bool tie_word_embeddings = true;

  template <class V>
  void fields(V& v, const EncoderKeys& keys) {
    v("vocab_size", vocab_size, "tokens known to the tokenizer", between(1, kMostVocabulary));
    v("max_position_embeddings", max_position_embeddings, "longest sequence in tokens",
      between(1, 1 << 24));
    v(keys.width, width, "width of the residual stream", between(1, kMostWidth));
    v(keys.layers, layers, "number of blocks", between(1, kMostLayers));
    v(keys.heads, heads, "attention heads; must divide the width", between(1, kMostHeads));
    v(keys.hidden, hidden, "width inside the feed-forward layers", between(1, kMostWidth));
    v(keys.activation, activation, "of the feed-forward layers", one_of(nn::activation_names()));
    v(keys.dropout, dropout, "dropout of embeddings and sublayers", from_below(0, 1));
    v(keys.attention_dropout, attention_dropout, "dropout of the attention weights",
      from_below(0, 1));
    v("initializer_range", initializer_range, "deviation of the weights at the start", at_least(0));
    v("tie_word_embeddings", tie_word_embeddings, "token embeddings predict the masked tokens");
  }
  void check(const std::string& source, const EncoderKeys& keys) const {
    check_heads(width, keys.width, heads, source);
  }
};

/// The fields of BERT, which RoBERTa has too.
struct BertConfig : EncoderFields {
  std::optional<double> classifier_dropout;

  BertConfig() { type_vocab_size = 2; }

  template <class V>
  void fields(V& v) {
    EncoderFields::fields(v, {});
    v("type_vocab_size", type_vocab_size, "token types: parts of a pair",
      between(1, kMostVocabulary));
    v("layer_norm_eps", layer_norm_eps, "inside the root of each norm", above(0));
    v("classifier_dropout", classifier_dropout, "before classes; none: hidden_dropout_prob",
      from_below(0, 1));
  }
  void check(const std::string& source) const { EncoderFields::check(source, {}); }
  ClassOptions classes(const HubConfig& hub) const {
    return {width, hub.classes(), initializer_range, classifier_dropout.value_or(dropout)};
  }
};

/// Names of parameters under the scope of a layer; the defaults are BERT's.
struct EncoderNames {
  const char* layers = "encoder.layer";  ///< under the base: scopes 0, 1, .. of the layers
  const char* attention = "attention.self";
  std::array<const char*, 3> projections = {"query", "key", "value"};
  const char* attention_out = "attention.output.dense";
  const char* attention_norm = "attention.output.LayerNorm";
  const char* in = "intermediate.dense";
  const char* out = "output.dense";
  const char* norm = "output.LayerNorm";
};

class EncoderStack : public TokenModel {
 public:
  /// `base`: where embeddings and layers are; `pad`: a token that begins as zero.
  EncoderStack(const Scope& base, const EncoderFields& fields, int64_t pad,
               const EncoderNames& names = {});

  Tensor hidden(const TokenRows& tokens, const Run& run) const override;

 protected:
  /// Spellings of BERT's and RoBERTa's checkpoints: old ones say gamma and beta. The head for
  /// tokens stands under `predictions`, where a tied one has its bias beside the decoder.
  nn::TensorNames names_of(const std::string& base, const std::string& predictions) const;

  Linear::Options square() const;
  /// Activation of a linear layer over the first token.
  Heads::OfInput pooler(const Scope& s, Activation kind) const;
  /// heads_.output over norm(activation(dense)): weight of the embedding table and bias at `bias`
  /// if they are tied, else both at `decoder`.
  void predict_tokens(const Scope& dense, const Scope& norm, Activation kind, const Scope& decoder,
                      const Scope& bias);

  EncoderFields fields_;
  nn::Embedding embedding_;
  std::vector<nn::Block> layers_;
};

}  // namespace heddle
