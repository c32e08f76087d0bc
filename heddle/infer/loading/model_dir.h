// Where a model lies, laid out as Hugging Face's models are.
#pragma once

#include <string>

namespace heddle {

// The files of a model directory.
inline constexpr const char* kConfigName = "config.json";
inline constexpr const char* kTokenizerName = "tokenizer.model";  ///< joint SentencePiece model
/// That of the target, where it has tokens of its own (decoder_vocab_size); tokenizer.model is then
/// the source's.
inline constexpr const char* kTargetTokenizerName = "target_tokenizer.model";
inline constexpr const char* kGenerationName = "generation_config.json";

/// The model directory that `path` names: itself, or `path`/best where only that has a config.json
/// (a training run). Errors: data if there is neither.
std::string find_model_dir(const std::string& path);

/// ". Models of huggingface.co are downloaded first, .." with the command, if `path` is not there
/// and reads like such a name ("bert-base-uncased", "openai-community/gpt2"); else "".
std::string hub_hint(const std::string& path);

}  // namespace heddle
