// Model directories: config, weights and tokenizer, checked against each other.
#include "heddle/infer/loading/model_dir.h"

#include <algorithm>
#include <array>

#include "heddle/base/files/files.h"
#include "heddle/base/log.h"
#include "heddle/base/profile.h"
#include "heddle/infer/loading/hub_hint.h"
#include "heddle/io/snapshot.h"
#include "heddle/io/weights.h"
#include "heddle/models/config.h"
#include "heddle/text/sentencepiece/marian_tokenizer.h"

namespace heddle {
namespace {

// Keys that heddle or Hugging Face write beside the model's fields; they change no result.
constexpr std::array kOtherKeys = {"model_type",       "architectures",
                                   "tokenizer",        "is_encoder_decoder",
                                   "torch_dtype",      "dtype",
                                   "_name_or_path",    "transformers_version",
                                   "target_tokenizer", "use_cache",
                                   "id2label",         "label2id",
                                   "num_beams",        "num_hidden_layers",
                                   "return_dict",      "auto_map"};

Json config_json(const TransformerConfig& config, const Tokenizer* tokenizer,
                 const Tokenizer* target) {
  Json json = Json::object();
  json["architectures"] = std::vector<std::string>{"HeddleTransformer"};
  json["model_type"] = kTransformerType;
  json["is_encoder_decoder"] = true;
  if (tokenizer != nullptr) json["tokenizer"] = tokenizer->fingerprint();
  if (target != nullptr) json["target_tokenizer"] = target->fingerprint();
  const Json fields = to_json(config);
  for (const auto& [key, value] : fields.as_object()) json[key] = value;
  return json;
}

Json generation_json(const TransformerConfig& c) {
  Json json = Json::object();
  json["pad_token_id"] = c.pad_token_id;
  json["bos_token_id"] = c.bos_token_id;
  json["eos_token_id"] = c.eos_token_id;
  json["decoder_start_token_id"] = c.decoder_start_token_id;
  return json;
}

bool holds(const std::string& path, const std::string& text) {
  return path_exists(path) && !is_directory(path) && read_file(path) == text;
}

Json read_config_file(const std::string& folder) {
  const std::string path = join_path(folder, kConfigName);
  Json json = Json::load(path);
  const Json* type = json.find("model_type");
  check(type != nullptr, ErrorKind::data,
        "{}: it has no 'model_type'; a translator has '{}' or '{}'. Is this a model that heddle "
        "trained?",
        path, kTransformerType, kMarianType);
  const std::string& name = type->as_string(path + ": key 'model_type'");
  check(is_translator_type(name), ErrorKind::data,
        "{}: model_type is '{}'; a translator has '{}' or '{}'", path, name, kTransformerType,
        kMarianType);
  return json;
}

bool is_marian(const Json& json) { return json.get_string("model_type") == kMarianType; }

TransformerConfig parse_marian_config(const Json& json, const std::string& path) {
  std::vector<std::string> unknown;
  TransformerConfig config = read_marian_config(json, path, unknown);
  std::erase_if(unknown, is_generation_key);
  if (!unknown.empty()) {
    log_warning("{}: heddle does not know and passes over {}", path, fmt::join(unknown, ", "));
  }
  return config;
}

// The largest position table that is made: beyond any sentence, within any memory.
void check_positions(const TransformerConfig& config, const std::string& path) {
  constexpr int64_t kMaxPositions = 1 << 24;
  check(config.max_position_embeddings <= kMaxPositions, ErrorKind::data,
        "{}: key 'max_position_embeddings' is {}; at most {} are possible", path,
        config.max_position_embeddings, kMaxPositions);
}

TransformerConfig parse_own_config(const Json& json, const std::string& path) {
  TransformerConfig config;
  std::vector<std::string> known;
  for (const FieldInfo& field : list_fields(config)) known.push_back(field.key);
  for (const std::string& key : from_json(config, json, path)) {
    if (std::find(kOtherKeys.begin(), kOtherKeys.end(), key) != kOtherKeys.end()) continue;
    fail(ErrorKind::data,
         "{}: unknown key '{}'{}; remove it, or use the version of heddle that wrote it", path, key,
         did_you_mean(key, known));
  }
  config.check(path);
  config.check_token_ids(path);
  return config;
}

TransformerConfig parse_config(const Json& json, const std::string& path) {
  const TransformerConfig config =
      is_marian(json) ? parse_marian_config(json, path) : parse_own_config(json, path);
  check_positions(config, path);
  return config;
}

// Refuses a config that asks for far more than the file holds before memory is taken for it.
void check_size(const TransformerConfig& c, const TensorFile& file) {
  const auto d = static_cast<double>(c.d_model);
  const double least = d * static_cast<double>(c.vocab_size) +
                       static_cast<double>(c.encoder_layers) *
                           (4 * d * d + 2 * d * static_cast<double>(c.encoder_ffn_dim)) +
                       static_cast<double>(c.decoder_layers) *
                           (8 * d * d + 2 * d * static_cast<double>(c.decoder_ffn_dim));
  const auto held = static_cast<double>(file.elements());
  check(least <= held, ErrorKind::data,
        "{}: it holds {:.0f} weights, but {} asks for at least {:.0f}; is it the config of this "
        "model?",
        file.path(), held, kConfigName, least);
}

// A tokenizer of a model directory. key: where the config has its fingerprint; size, size_key: the
// tokens that the model knows.
struct TokenizerPlace {
  const char *name, *key, *size_key;
  int64_t size;
};

Tokenizer load_tokenizer(const std::string& folder, const TokenizerPlace& place, const Json& json) {
  const std::string path = join_path(folder, place.name);
  check(path_exists(path), ErrorKind::data,
        "{}: the tokenizer is missing; copy the SentencePiece model that the model was trained "
        "with there",
        path);
  Tokenizer tokenizer = Tokenizer::load(path);
  check(tokenizer.vocab_size() == place.size, ErrorKind::data,
        "{}: it has {} tokens, but the model has {} {}; it is the tokenizer of another model", path,
        tokenizer.vocab_size(), place.size_key, place.size);
  const Json* wanted = json.find(place.key);
  if (wanted != nullptr && !wanted->is_null()) {
    const std::string& fingerprint =
        wanted->as_string(fmt::format("config.json: key '{}'", place.key));
    check(fingerprint == tokenizer.fingerprint(), ErrorKind::data,
          "{}: its fingerprint is {}, but the model was trained with {}; it is the tokenizer of "
          "another vocabulary, and ids would mean other tokens",
          path, tokenizer.fingerprint(), fingerprint);
  }
  return tokenizer;
}

// Its tokens may be fewer than the model's, whose table is often padded.
Tokenizer load_marian_side(const std::string& folder, MarianSide side, int64_t tokens) {
  Tokenizer tokenizer = load_marian_tokenizer(folder, side);
  check(
      tokenizer.vocab_size() <= tokens, ErrorKind::data,
      "{}: {} has ids up to {}, but the model has {} tokens; it is the tokenizer of another model",
      folder, kMarianVocabName, tokenizer.vocab_size() - 1, tokens);
  return tokenizer;
}

struct Tokenizers {
  std::optional<Tokenizer> source, target;
};

Tokenizers load_tokenizers(const std::string& folder, const TransformerConfig& config,
                           const Json& json) {
  Tokenizers result;
  if (is_marian(json)) {
    config.check_token_ids(join_path(folder, kConfigName));
    result.source = load_marian_side(folder, MarianSide::source, config.vocab_size);
    result.target = load_marian_side(folder, MarianSide::target, config.target_vocab_size());
    return result;
  }
  result.source =
      load_tokenizer(folder, {kTokenizerName, "tokenizer", "vocab_size", config.vocab_size}, json);
  if (config.decoder_vocab_size > 0) {
    result.target = load_tokenizer(
        folder,
        {kTargetTokenizerName, "target_tokenizer", "decoder_vocab_size", config.decoder_vocab_size},
        json);
  }
  return result;
}

void check_vocabulary(const std::string& path, const Tokenizer* tokenizer, const char* key,
                      int64_t size) {
  check(tokenizer == nullptr || tokenizer->vocab_size() == size, ErrorKind::data,
        "{}: the tokenizer has {} tokens, the model {} {}", path,
        tokenizer == nullptr ? 0 : tokenizer->vocab_size(), key, size);
}

}  // namespace

void save_model_dir(const std::string& path, const TransformerConfig& config,
                    const nn::Parameters& parameters, const Tokenizer* tokenizer,
                    const Tokenizer* target) {
  const ProfilePhase phase("save model");
  check_vocabulary(path, tokenizer, "vocab_size", config.vocab_size);
  check_vocabulary(path, target, "decoder_vocab_size", config.decoder_vocab_size);
  make_directories(path);
  const auto file = [&](const char* name) { return join_path(path, name); };
  const std::string text = config_json(config, tokenizer, target).dump(2) + "\n";
  const auto is_there = [&](const char* name, const Tokenizer* t) {
    return t == nullptr || holds(file(name), t->model_bytes());
  };
  const bool is_same = holds(file(kConfigName), text) && is_there(kTokenizerName, tokenizer) &&
                       is_there(kTargetTokenizerName, target);
  if (!is_same) {
    remove_path(file(kWeightsName));
    sync_directory(path);
    if (tokenizer != nullptr) tokenizer->save(file(kTokenizerName));
    if (target != nullptr) target->save(file(kTargetTokenizerName));
    write_file_atomic(file(kGenerationName), generation_json(config).dump(2) + "\n");
    write_file_atomic(file(kConfigName), text);
  }
  parameters.save(file(kWeightsName));
}

namespace {

// What to do about a training run that has no model; names the one that it was to replace.
std::string hint_of_run(const std::string& run) {
  const bool has_saved = path_exists(join_path(join_path(run, "state"), kManifestName));
  const std::string replaced = join_path(run, "replaced");
  if (!is_directory(join_path(replaced, "best"))) {
    return fmt::format(
        "this training run has not been validated yet, so it has no model; go on with heddle train "
        "--out {}",
        run);
  }
  if (has_saved) {
    return fmt::format(
        "the run begun here with --overwrite has not been validated yet, so it has no model; go on "
        "with heddle train --out {}, or name {}, which keeps the earlier run until then",
        run, replaced);
  }
  return fmt::format(
      "a start with --overwrite was stopped here; heddle train --out {} puts back the run that it "
      "was to replace, which lies in {}",
      run, replaced);
}

}  // namespace

std::string find_model_dir(const std::string& path) {
  check(path_exists(path), ErrorKind::data,
        "{}: there is no such folder; a model directory or a training run is needed{}", path,
        hub_hint(path));
  check(is_directory(path), ErrorKind::data,
        "{}: it is a file; the folder of a model or of a training run is needed", path);
  if (path_exists(join_path(path, kConfigName))) return path;
  const std::string best = join_path(path, "best");
  if (path_exists(join_path(best, kConfigName))) return best;
  const bool is_run =
      path_exists(join_path(path, "train.json")) || is_directory(join_path(path, "replaced/best"));
  check(!is_run, ErrorKind::data, "{}: {}", path, hint_of_run(path));
  fail(ErrorKind::data,
       "{}: it holds neither {} nor best/{}; a model directory or a training run is needed", path,
       kConfigName, kConfigName);
}

TransformerConfig load_config(const std::string& folder) {
  return parse_config(read_config_file(folder), join_path(folder, kConfigName));
}

bool is_translator_type(const std::string& type) {
  return type == kTransformerType || type == kMarianType;
}

bool has_translation_tokenizer(const std::string& folder) {
  const char* const name = is_marian(read_config_file(folder)) ? kMarianSourceName : kTokenizerName;
  return path_exists(join_path(folder, name));
}

TranslationModel load_translation_model(const std::string& path, const LoadOptions& options) {
  const ProfilePhase phase("load model");
  const std::string folder = find_model_dir(path);
  const Json json = read_config_file(folder);
  const bool is_hub = is_marian(json);
  TransformerConfig config = parse_config(json, join_path(folder, kConfigName));
  std::optional<GenerationConfig> generation;
  if (is_hub) {
    generation = read_generation_config(folder);
    config.decoder_start_token_id =
        generation->decoder_start.value_or(static_cast<int32_t>(config.decoder_start_token_id));
  }
  Tokenizers tokenizers;
  if (options.need_tokenizer) tokenizers = load_tokenizers(folder, config, json);
  const std::unique_ptr<TensorFile> file = open_weights(folder);
  if (is_hub) fit_marian_config(config, *file);
  check_size(config, *file);
  file->verify();
  nn::Parameters parameters = nn::Parameters::to_be_loaded(file->elements(), file->path());
  Transformer model(nn::Scope(parameters), config);
  parameters.load(*file, is_hub ? marian_names(config) : nn::TensorNames());
  return {folder,
          json.get_string("model_type"),
          config,
          std::move(parameters),
          std::move(model),
          std::move(tokenizers.source),
          std::move(tokenizers.target),
          std::move(generation)};
}

}  // namespace heddle
