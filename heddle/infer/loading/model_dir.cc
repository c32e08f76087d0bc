// Model directories: config, weights and tokenizer, checked against each other.
#include "heddle/infer/loading/model_dir.h"

#include <algorithm>

#include "heddle/base/files/files.h"
#include "heddle/base/profile.h"
#include "heddle/infer/loading/hub_hint.h"
#include "heddle/io/snapshot.h"
#include "heddle/io/weights.h"
#include "heddle/models/registry.h"
#include "heddle/text/sentencepiece/marian_tokenizer.h"

namespace heddle {
namespace {

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
        path, kTransformerType, "marian");
  const std::string& name = type->as_string(path + ": key 'model_type'");
  check(is_translator_type(name), ErrorKind::data,
        "{}: model_type is '{}'; a translator has '{}' or '{}'", path, name, kTransformerType,
        "marian");
  return json;
}

bool is_marian(const Json& json) { return json.get_string("model_type") == "marian"; }

std::unique_ptr<ModelConfig> parse_config(const Json& json, const std::string& folder) {
  return read_model_config(json, join_path(folder, kConfigName));
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
    config.check(join_path(folder, kConfigName));
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
  const auto model = parse_config(read_config_file(folder), folder);
  auto unmade = nn::Parameters::shapes_alone();
  const auto made = model->make(nn::Scope(unmade));
  return static_cast<const Transformer&>(*made).transformer_config();
}

bool is_translator_type(const std::string& type) {
  return type == kTransformerType || type == "marian";
}

bool has_translation_tokenizer(const std::string& folder) {
  const char* const name = is_marian(read_config_file(folder)) ? kMarianSourceName : kTokenizerName;
  return path_exists(join_path(folder, name));
}

TranslationModel load_translation_model(const std::string& path, const LoadOptions& options) {
  const ProfilePhase phase("load model");
  const std::string folder = find_model_dir(path);
  Json json = read_config_file(folder);
  std::optional<SearchConfig> generation;
  if (!model_config(json.get_string("model_type"))->is_own_format()) {
    generation = read_generation_config(folder);
    if (const auto start = token_id(generation->decoder_start)) {
      json["decoder_start_token_id"] = *start;
    }
  }
  const std::unique_ptr<ModelConfig> config = parse_config(json, folder);
  const std::unique_ptr<TensorFile> file = open_weights(folder);
  config->fit(*file);
  file->verify();
  nn::Parameters parameters = nn::Parameters::to_be_loaded(file->elements(), file->path());
  const std::unique_ptr<Model> made = config->make(nn::Scope(parameters));
  parameters.load(*file, made->names());
  auto& model = static_cast<Transformer&>(*made);
  const TransformerConfig own = model.transformer_config();
  Tokenizers tokenizers;
  if (options.need_tokenizer) tokenizers = load_tokenizers(folder, own, json);
  return {folder,
          config->type,
          own,
          std::move(parameters),
          std::move(model),
          std::move(tokenizers.source),
          std::move(tokenizers.target),
          std::move(generation)};
}

}  // namespace heddle
