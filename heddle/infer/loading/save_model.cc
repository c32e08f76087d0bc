// A model's folder, written so that a crash leaves the old model or the new one.
#include <algorithm>
#include <array>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/base/profile.h"
#include "heddle/infer/loading/loaded_model.h"
#include "heddle/infer/loading/sentence_modules.h"
#include "heddle/io/snapshot.h"
#include "heddle/io/tensor_file.h"
#include "heddle/tensor/convert.h"
#include "heddle/text/sentencepiece/sentencepiece_tokenizer.h"
#include "heddle/vision/image_processor.h"

namespace heddle {
namespace {

// What travels along as it is, where it is there.
constexpr std::array kBesideWeights = {kGenerationName,
                                       kPreprocessorName,
                                       "tokenizer.json",
                                       "tokenizer_config.json",
                                       "special_tokens_map.json",
                                       "added_tokens.json",
                                       "vocab.json",
                                       "merges.txt",
                                       "encoder.json",
                                       "vocab.bpe",
                                       "vocab.txt",
                                       "spiece.model",
                                       "tokenizer.model",
                                       "sentencepiece.bpe.model",
                                       kMarianSourceName,
                                       kMarianTargetName,
                                       kMarianTargetVocabName,
                                       "chat_template.jinja"};

void check_vocabulary(const std::string& path, const Tokenizer* tokenizer, const char* key,
                      int64_t size) {
  check(tokenizer == nullptr || tokenizer->vocab_size() == size, ErrorKind::data,
        "{}: the tokenizer has {} tokens, the model {} {}", path,
        tokenizer == nullptr ? 0 : tokenizer->vocab_size(), key, size);
}

// The tokenizers of an encoder-decoder of heddle's own, and how it is searched.
void add_own_files(const std::string& path, const EncoderDecoderFacts& facts,
                   const SaveOptions& options, std::vector<TokenizerFile>& files) {
  check_vocabulary(path, options.tokenizer, "vocab_size", facts.text_vocab_size());
  check_vocabulary(path, options.target, "decoder_vocab_size", facts.target_vocab_size);
  if (options.tokenizer) files.push_back({kTokenizerName, options.tokenizer->model_bytes()});
  if (options.target) files.push_back({kTargetTokenizerName, options.target->model_bytes()});
  const std::string searched = join_path(options.searched_as, kGenerationName);
  const bool has_search = !options.searched_as.empty() && path_exists(searched);
  Json json = has_search ? Json::load(searched) : Json::object();
  json["pad_token_id"] = facts.pad_token_id;
  json["bos_token_id"] = facts.bos_token_id;
  json["eos_token_id"] = facts.eos_token_id;
  json["decoder_start_token_id"] = facts.decoder_start_token_id;
  files.push_back({kGenerationName, json.dump(2) + "\n"});
}

// What `torch_dtype` of config.json calls it. Of f32, bf16 and f16.
const char* torch_dtype_name(DType dtype) {
  return dtype == DType::f32 ? "float32" : dtype == DType::bf16 ? "bfloat16" : "float16";
}

Json config_json(const Model& model, const SaveOptions& options) {
  Json json = model.config().json();
  json.erase(kQuantizationKey);
  if (!options.quantization.is_null()) json[kQuantizationKey] = options.quantization;
  json["torch_dtype"] = torch_dtype_name(options.dtype);
  if (!model.config().is_own_format()) return json;
  json.erase("torch_dtype");  // it is always f32
  if (options.tokenizer != nullptr) json["tokenizer"] = options.tokenizer->fingerprint();
  if (options.target != nullptr) json["target_tokenizer"] = options.target->fingerprint();
  return json;
}

bool holds(const std::string& path, const std::string& text) {
  return path_exists(path) && !is_directory(path) && read_file(path) == text;
}

}  // namespace

void save_model(const std::string& path, const Model& model, const nn::Parameters& parameters,
                const SaveOptions& options) {
  const ProfilePhase phase("save model");
  check_saved(options.dtype);
  std::vector<TokenizerFile> files;  // beside the weights
  if (model.config().is_own_format()) {
    add_own_files(path, model.as<EncoderDecoder>()->facts(), options, files);
  } else if (options.tokenizer != nullptr) {
    files = options.tokenizer->files();
  }
  files.push_back({kConfigName, config_json(model, options).dump(2) + "\n"});  // written last
  make_directories(path);
  const auto is_there = [&](const TokenizerFile& file) {
    return holds(join_path(path, file.name), file.bytes);
  };
  const bool is_same = std::all_of(files.begin(), files.end(), is_there);
  const bool saves_folder = options.tokenizer && !model.config().is_own_format();
  const std::string weights = join_path(path, kWeightsName);
  if (is_same) {
    if (saves_folder) options.tokenizer->save_folder(path);
    if (options.has_weights) parameters.save(weights, options.dtype);
    return;
  }
  const std::string next = temporary_name(weights);
  try {
    if (options.has_weights) parameters.save(next, options.dtype);  // the disk has room for them
    remove_path(weights);
    sync_directory(path);
    for (const TokenizerFile& file : files) {
      write_file_atomic(join_path(path, file.name), file.bytes);
    }
    if (saves_folder) options.tokenizer->save_folder(path);
    if (options.has_weights) rename_path(next, weights);
  } catch (...) {
    remove_path(next);
    throw;
  }
}

std::vector<std::string> files_beside_weights() {
  return {kBesideWeights.begin(), kBesideWeights.end()};
}

void copy_files_beside_weights(const std::string& from, const std::string& to) {
  make_directories(to);
  for (const char* name : kBesideWeights) {
    const std::string path = join_path(from, name);
    if (path_exists(path)) write_file_atomic(join_path(to, name), read_file(path));
  }
  copy_sentence_entries(from, to);
}

}  // namespace heddle
