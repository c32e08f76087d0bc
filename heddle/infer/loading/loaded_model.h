// A model in a folder, as Hugging Face lays it out: where it lies, config, weights, tokenizers, how
// it writes; and the number format that it computes in.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "heddle/infer/search/search_config.h"
#include "heddle/models/encoder_decoder.h"
#include "heddle/models/registry.h"
#include "heddle/tensor/dtype.h"
#include "heddle/text/tokenizer.h"

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

/// A model that is ready to use. What was not asked for is absent.
struct LoadedModel {
  std::string path;  ///< the folder that it was read from
  std::string type;  ///< model_type of its config
  nn::Parameters parameters;
  std::unique_ptr<Model> model;
  std::optional<Tokenizer> tokenizer = {};         ///< of all texts, or of sources
  std::optional<Tokenizer> target_tokenizer = {};  ///< absent: it is `tokenizer`
  /// How the folder wants it searched; below it are heddle's own defaults or transformers'.
  std::optional<SearchConfig> generation = {};
  int64_t max_length = 0;  ///< ids that a text may have, special ones included
  /// Of tokenizer.languages(), that of the sources; -1: as the tokenizer's files have it.
  int32_t source_language = -1;

  /// The model as one with an ability. Errors: data if it has it not.
  const TokenModel& tokens() const { return model->need<TokenModel>(path); }
  const EncoderDecoder& translator() const { return model->need<EncoderDecoder>(path); }
  /// The tokenizer of targets. Errors: data if none was loaded.
  const Tokenizer& target() const {
    check(target_tokenizer || tokenizer, ErrorKind::data, "{}: no tokenizer was loaded", path);
    return target_tokenizer ? *target_tokenizer : *tokenizer;
  }
};

struct LoadOptions {
  /// What is to stand on a bare stack (GPT2Model), where the family has that: a tied output needs
  /// no weights of its own.
  Head head = Head::none;
  enum class Tokenizers : uint8_t { none, if_there, needed } tokenizers = Tokenizers::none;
  /// What the model must read: one text, or pairs of source and target.
  enum class Reads : uint8_t { anything, one_text, pairs } reads = Reads::anything;
};

/// Whether the model that `path` names, see find_model_dir(), reads a source and writes a target.
/// Errors: data, naming the file and the known types, for a model_type of none of them.
bool is_translator(const std::string& path);
/// Whether it reads images. Errors: the same.
bool reads_images(const std::string& path);
/// The config of that model, with what its weights and generation_config.json say beside it.
/// Errors: those of ModelConfig::read() and open_weights().
std::unique_ptr<ModelConfig> load_model_config(const std::string& path);
/// The weights of that model under the names that its family has for them. Errors: those of
/// open_weights().
std::unique_ptr<TensorFile> open_model_weights(const std::string& path);
/// Reads generation_config.json of a folder, and the special ids that it lacks from config.json;
/// where there is none, all from config.json, as older checkpoints have it; both may be missing.
/// config: config.json, if it was read already or is not to count. Errors: data, naming file and
/// key, for a broken file or a value of a wrong type or range.
SearchConfig read_generation_config(const std::string& folder, const Json* config = nullptr);

/// Reads config.json and the weights, see open_weights(); `path` is a model directory or a training
/// run, see find_model_dir(). A folder with an adapter in place of weights gives the model that it
/// stands on with the adapter added. Errors: those of ModelConfig::read(); data, naming the file
/// and what to do, for anything missing, broken, altered or cut short, weights of another config, a
/// tokenizer of another vocabulary, or a model that reads something else.
LoadedModel load_model(const std::string& path, const LoadOptions& options = {});
/// One that translates, with its tokenizers. Errors: data if the model does not.
LoadedModel load_translation_model(const std::string& path);
/// Reads the tokenizers of a model that was loaded without them. Errors: data for one of another
/// vocabulary, or, if they are needed, none.
void load_tokenizers(LoadedModel& model, bool is_needed);

struct SaveOptions {
  const Tokenizer* tokenizer = nullptr;
  const Tokenizer* target = nullptr;  ///< the target's own, if it has one
  DType dtype = DType::f32;           ///< of the weights: f32, bf16 or f16
  bool has_weights = true;            ///< false: all but these, of an adapter's folder
  Json quantization = {};  ///< of config.json, where weights are rounded to a few bits; else null
  std::string searched_as = {};  ///< folder whose settings of search one of its own keeps
};

/// Writes config.json, model.safetensors and the tokenizers' files, each so that a crash leaves the
/// old or the new file whole; of a translator of heddle's own generation_config.json too. The
/// folder is made if need be. A model of another config or tokenizer in the same folder loses its
/// weights before the other files change, so that files of two models never pass for one, but only
/// once the new weights lie on the disk. Errors: usage for another dtype; data if a tokenizer has
/// more tokens than its vocabulary, or values are beyond f16; system for a full disk or no
/// permission.
void save_model(const std::string& path, const Model& model, const nn::Parameters& parameters,
                const SaveOptions& options = {});

/// Files of a model's folder beside config.json and weights: tokenizers, generation_config.json.
std::vector<std::string> files_beside_weights();
/// Copies those that are there, each atomically. Errors: system.
void copy_files_beside_weights(const std::string& from, const std::string& to);

/// "f32", "bf16", "auto": bf16 where the CPU has instructions for it (AVX-512 BF16 or AMX), else
/// f32; or "int8": products with weights in int8, all else as auto has it.
/// Errors: usage for any other name.
Precision resolve_precision(const std::string& name);

/// "f32", "bf16" or "int8".
std::string precision_name(const Precision& precision);

}  // namespace heddle
