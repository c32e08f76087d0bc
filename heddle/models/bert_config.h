// The fields of BERT, which RoBERTa has too.
#pragma once

#include "heddle/models/encoder.h"

namespace heddle {

/// Hugging Face's keys; the defaults are BERT base.
struct BertConfig {
  int64_t vocab_size = 30522, max_position_embeddings = 512, type_vocab_size = 2;
  int64_t hidden_size = 768, num_hidden_layers = 12, num_attention_heads = 12;
  int64_t intermediate_size = 3072;
  std::string hidden_act = "gelu";
  double hidden_dropout_prob = 0.1, attention_probs_dropout_prob = 0.1;
  double layer_norm_eps = 1e-12, initializer_range = 0.02;
  std::optional<double> classifier_dropout;
  bool tie_word_embeddings = true;

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
    v("hidden_dropout_prob", hidden_dropout_prob, "dropout of embeddings and sublayers",
      from_below(0, 1));
    v("attention_probs_dropout_prob", attention_probs_dropout_prob,
      "dropout of the attention weights", from_below(0, 1));
    v("layer_norm_eps", layer_norm_eps, "inside the root of each norm", above(0));
    v("initializer_range", initializer_range, "deviation of the weights at the start", at_least(0));
    v("classifier_dropout", classifier_dropout, "before classes; none: hidden_dropout_prob",
      from_below(0, 1));
    v("tie_word_embeddings", tie_word_embeddings, "word embeddings predict the masked words");
  }
  void check(const std::string& source) const {
    check_heads(hidden_size, "hidden_size", num_attention_heads, source);
  }
  EncoderSizes sizes(int64_t pad) const {
    return {.vocab = vocab_size,
            .positions = max_position_embeddings,
            .types = type_vocab_size,
            .width = hidden_size,
            .layers = num_hidden_layers,
            .heads = num_attention_heads,
            .hidden = intermediate_size,
            .activation = hidden_act,
            .dropout = hidden_dropout_prob,
            .attention_dropout = attention_probs_dropout_prob,
            .eps = layer_norm_eps,
            .std = initializer_range,
            .pad = pad};
  }
};

}  // namespace heddle
