// The fields of BERT, which RoBERTa has too.
#pragma once

#include "heddle/models/encoder.h"

namespace heddle {

/// Hugging Face's keys; the defaults are BERT base.
struct BertConfig : EncoderFields {
  std::optional<double> classifier_dropout;

  BertConfig() { type_vocab_size = 2; }

  template <class V>
  void fields(V& v) {
    EncoderFields::fields(v, {});
    v("type_vocab_size", type_vocab_size, "token types: parts of a pair", at_least(1));
    v("layer_norm_eps", layer_norm_eps, "inside the root of each norm", above(0));
    v("classifier_dropout", classifier_dropout, "before classes; none: hidden_dropout_prob",
      from_below(0, 1));
  }
  void check(const std::string& source) const { EncoderFields::check(source, {}); }
  ClassOptions classes(const HubConfig& hub) const {
    return {width, hub.classes(), initializer_range, classifier_dropout.value_or(dropout)};
  }
};

}  // namespace heddle
