// A translation model in a folder, laid out as Hugging Face's models are.
#pragma once

#include <optional>
#include <string>

#include "heddle/infer/loading/generation_config.h"
#include "heddle/io/weights.h"
#include "heddle/models/transformer.h"
#include "heddle/text/tokenizer.h"

namespace heddle {

// The files of a model directory.
inline constexpr const char* kConfigName = "config.json";
inline constexpr const char* kTokenizerName = "tokenizer.model";  ///< joint SentencePiece model
/// That of the target, where it has tokens of its own (decoder_vocab_size); tokenizer.model is then
/// the source's.
inline constexpr const char* kTargetTokenizerName = "target_tokenizer.model";
inline constexpr const char* kGenerationName = "generation_config.json";
/// `model_type` in config.json.
inline constexpr const char* kTransformerType = "heddle_transformer";

/// Whether load_translation_model() reads models of this type.
bool is_translator_type(const std::string& type);

/// A model that is ready to use.
struct TranslationModel {
  std::string path;  ///< the folder that it was read from
  std::string type;  ///< model_type of its config
  TransformerConfig config;
  nn::Parameters parameters;
  Transformer model;
  std::optional<Tokenizer> tokenizer;         ///< of both sides, or of the source
  std::optional<Tokenizer> target_tokenizer;  ///< absent: it is `tokenizer`

  std::optional<SearchConfig> generation;  ///< of a marian: how its folder wants it searched

  /// The tokenizer of translations. Needs one to be loaded.
  const Tokenizer& target() const {
    return target_tokenizer ? *target_tokenizer : tokenizer.value();
  }
};

struct LoadOptions {
  bool need_tokenizer = true;  ///< false: the tokenizer is neither needed nor read
};

/// Writes config.json, generation_config.json, tokenizer.model and model.safetensors, each so that
/// a crash leaves the old or the new file whole; the folder is made if need be. A model of another
/// config or tokenizer in the same folder loses its weights first, so that files of two models
/// never pass for one. `tokenizer` may be null; `target` is the target's own, if it has one.
/// Errors: data if a tokenizer's size is not that of its vocabulary; system for a full disk or no
/// permission.
void save_model_dir(const std::string& path, const TransformerConfig& config,
                    const nn::Parameters& parameters, const Tokenizer* tokenizer,
                    const Tokenizer* target = nullptr);

/// The model directory that `path` names: itself, or `path`/best where only that has a config.json
/// (a training run). Errors: data if there is neither.
std::string find_model_dir(const std::string& path);

/// Reads config.json of a model directory. Errors: data, naming file and key, for a missing or
/// broken file, another model_type, an unknown key, or fields that do not fit together.
TransformerConfig load_config(const std::string& folder);

/// Whether the folder holds the tokenizer that its type of model needs.
bool has_translation_tokenizer(const std::string& folder);

/// Reads a model, of heddle or a marian; `path` is a model directory or a training run, see
/// find_model_dir(). Errors: data, naming the file and what to do, for anything missing, broken,
/// altered or cut short, weights of another config, or a tokenizer of another vocabulary.
TranslationModel load_translation_model(const std::string& path, const LoadOptions& options = {});

}  // namespace heddle
