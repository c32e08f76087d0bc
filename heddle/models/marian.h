// Marian's translators (OPUS-MT) as Hugging Face keeps them: a Transformer under other names.
// Source: Junczys-Dowmunt et al. 2018, "Marian: Fast Neural Machine Translation in C++";
// transformers 5.23, models/marian.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/io/tensor_file.h"
#include "heddle/models/transformer.h"

namespace heddle {

/// Its fields; they leave open what Marian has one way of.
struct MarianConfig : TransformerConfig {
  MarianConfig();
  /// Those that both have, under one name and with one meaning.
  template <class V>
  void fields(V& v) {
    const auto shared = [&](const char* key, auto& member, const char* help, FieldRule rule = {}) {
      if (is_shared(key)) v(key, member, help, std::move(rule));
    };
    TransformerConfig::fields(shared);
    v("decoder_vocab_size", target_vocab, "tokens of the target; none: vocab_size", at_least(1));
  }
  static bool is_shared(std::string_view key);

  /// Errors: data, naming `source`. Special ids may be beyond the vocabulary.
  void check(const std::string& source) const;
  /// What the config leaves open is seen from the tensors: whether there is a bias on the logits,
  /// and whether source and target have tables of their own after all.
  void fit(const TensorFile& weights);
  /// The heddle_transformer that computes the same.
  TransformerConfig transformer() const;

  std::optional<int64_t> target_vocab;
};

class Marian final : public Transformer {
 public:
  using Config = MarianConfig;
  static constexpr bool kIsOwnFormat = false;
  static std::vector<HeadClass> heads();
  static std::vector<std::pair<std::string, Json>> passed_over();
  Marian(const nn::Scope& s, const MarianConfig& config, const HubConfig& hub)
      : Transformer(s, config.transformer(), hub) {}

  nn::TensorNames names() const override;
};

/// config.json of a MarianMTModel that computes the same, see marian_tensors(). Errors: data,
/// naming `source`, the switch and its value, where Marian has no such model.
Json marian_config_json(const TransformerConfig& config, const std::string& source);

/// A tensor of a checkpoint, f32.
struct NamedFloats {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<float> values;
};

/// The tensors of that MarianMTModel. Marian has sines in the first half of the width and cosines
/// in the second; where they take turns in `config`, all columns of the residual stream change
/// positions in all tensors, which changes no logit but by rounding: each product, sum and norm
/// over the width has the same terms in another order.
std::vector<NamedFloats> marian_tensors(const TransformerConfig& config,
                                        const nn::Parameters& parameters);

}  // namespace heddle
