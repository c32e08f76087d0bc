// Marian's translators (OPUS-MT) as Hugging Face keeps them: a Transformer under other names.
// Source: Junczys-Dowmunt et al. 2018, "Marian: Fast Neural Machine Translation in C++";
// transformers 5.23, models/marian.
#pragma once

#include <string>
#include <vector>

#include "heddle/io/tensor_file.h"
#include "heddle/models/transformer.h"

namespace heddle {

/// `model_type` in config.json.
inline constexpr const char* kMarianType = "marian";

/// Reads the config of a MarianMTModel. `unknown` receives the keys that are none of its own.
/// Special ids may be beyond the vocabulary, see TransformerConfig::check_token_ids().
/// Errors: data, naming `source` and key, for a wrong type or value, and for a switch that changes
/// numbers and that transformers' Marian lacks.
TransformerConfig read_marian_config(const Json& json, const std::string& source,
                                     std::vector<std::string>& unknown);

/// What the config leaves open is seen from the tensors: whether there is a bias on the logits, and
/// whether source and target have tables of their own after all.
void fit_marian_config(TransformerConfig& config, const TensorFile& weights);

/// Other spellings of its tensors.
nn::TensorNames marian_names(const TransformerConfig& config);

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
