// BART and its kin: the fields that Hugging Face's encoder-decoders have, over a Transformer of the
// family's own.
#pragma once

#include <algorithm>
#include <string_view>

#include "heddle/io/tensor_file.h"
#include "heddle/models/family.h"
#include "heddle/models/transformer.h"
#include "heddle/nn/mlp.h"

namespace heddle {

/// Whether there is a bias on the logits, and which tables are one, is seen from the tensors.
inline void fit_to_tensors(TransformerConfig& c, const TensorFile& weights) {
  const auto holds = [&](const std::string& name) {
    return weights.contains(name) || weights.contains("model." + name);
  };
  c.output_bias = holds("final_logits_bias");
  // transformers 5 ties nothing where tie_word_embeddings is false, whatever the config says beside
  // it, nor where it is true tables that differ.
  const auto find = [&](const std::string& name) {
    const StoredTensor* found = weights.find(name);
    return found != nullptr ? found : weights.find("model." + name);
  };
  const StoredTensor *shared = find("shared.weight"), *source = find("encoder.embed_tokens.weight"),
                     *target = find("decoder.embed_tokens.weight");
  if (source == nullptr || target == nullptr) return;
  const auto differ = [](const StoredTensor* a, const StoredTensor* b) {
    return a != nullptr && !std::ranges::equal(a->bytes, b->bytes);
  };
  const bool is_untied = !c.tie_word_embeddings || differ(shared, source) ||
                         differ(shared, target) || differ(source, target);
  if (is_untied) c.share_encoder_decoder_embeddings = false;
}

/// Keys of transformers for the same, which it lets go before the encoder's own.
inline std::vector<std::pair<std::string, std::string>> bart_aliases() {
  return {{"hidden_size", "d_model"},
          {"num_attention_heads", "encoder_attention_heads"},
          {"num_hidden_layers", "encoder_layers"}};
}

/// Names of checkpoints: which tables are one. `positions`: saved, but no parameter; may be "".
inline nn::TensorNames names_of_tables(const TransformerConfig& c, const std::string& positions) {
  nn::TensorNames names{.base = "model"};
  if (!positions.empty()) names.unneeded = {positions};
  const std::string shared = "model.shared.weight", source = "model.encoder.embed_tokens.weight",
                    target = "model.decoder.embed_tokens.weight", output = "lm_head.weight";
  if (c.share_encoder_decoder_embeddings) {
    names.tied = {{source, shared}, {target, shared}};
    if (c.tie_word_embeddings) names.tied.emplace_back(output, shared);
  } else {
    names.unneeded.emplace_back("shared.weight");
    if (c.tie_word_embeddings) names.tied = {{output, target}};
  }
  return names;
}

/// Of a Transformer's fields those that the kin have; the others make the family.
struct BartFields : TransformerConfig {
  BartFields() {
    vocab_size = 50265;
    set_sizes(12, 1024, 4096, 16);
    activation_function = "gelu";
    max_position_embeddings = 1024;
    scale_embedding = false;
    init_std = 0.02;
    pad_token_id = 1, bos_token_id = 0;
    eos_token_id = decoder_start_token_id = 2;
    output_bias = true;
  }

  template <class V>
  void fields(V& v) {
    constexpr std::string_view kLeftOut =
        "decoder_vocab_size embedding_dropout normalize_before normalize_embedding normalization "
        "layer_norm_eps projection_bias output_bias attention_scoring position_embedding_type "
        "rope_theta sinusoidal_layout sinusoidal_frequencies share_encoder_decoder_embeddings";
    const auto own = [&](std::string_view key, auto& member, const char* help,
                         FieldRule rule = {}) {
      if (is_listed(key, kLeftOut)) return;
      if (key == "activation_function") rule = one_of(nn::activation_names());
      v(key.data(), member, help, std::move(rule));
    };
    TransformerConfig::fields(own);
  }

  /// Special ids may be beyond the vocabulary.
  void check(const std::string& source) const { check_sizes(source); }

  void fit(const TensorFile& weights) { fit_to_tensors(*this, weights); }

  /// A bare model has no output that could be untied: here its embeddings are it.
  static Json from_hub(const Json& json, const std::string& source) {
    Json flat = json;
    const Json* classes = json.find("architectures");
    if (classes == nullptr || classes->is_null()) return flat;
    for (const std::string& name : classes->as_strings(source + ": key 'architectures'")) {
      const bool is_bare = name.ends_with("Model") && !name.ends_with("MTModel");
      if (is_bare) flat["tie_word_embeddings"] = true;
    }
    return flat;
  }
};

/// The model of a family.
class BartStack : public Transformer {
 public:
  static HubFamily family_of(const std::string& family, const BartFields& c) {
    return {.heads = {{Head::target_token, family + "ForConditionalGeneration"},
                      {Head::target_token, family + "Model"}},
            .aliases = bart_aliases(),
            .passed_over = {{"normalize_before", c.normalize_before},
                            {"normalize_embedding", c.normalize_embedding},
                            {"add_final_layer_norm", c.normalize_before}}};
  }

  BartStack(const Scope& s, BartFields c, const HubConfig& hub)
      : Transformer(s, (c.embedding_dropout = c.dropout, c), hub) {}

  nn::TensorNames names() const override {
    const TransformerConfig& c = transformer_config();
    const bool has_sines = c.position_embedding_type == "sinusoidal";  // they are saved too
    return names_of_tables(c, has_sines ? "embed_positions.weights" : "");
  }
};

}  // namespace heddle
