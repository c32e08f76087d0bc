// Config, weights and tokenizers of a folder, checked against each other.
#include "heddle/infer/loading/loaded_model.h"

#include <algorithm>

#include "heddle/base/files/files.h"
#include "heddle/base/profile.h"
#include "heddle/infer/loading/adapter.h"
#include "heddle/infer/loading/model_dir.h"
#include "heddle/io/tensor_file.h"
#include "heddle/text/tokenizer.h"

namespace heddle {
namespace {

Json read_config(const std::string& folder) {
  const std::string path = join_path(folder, kConfigName);
  Json json = Json::load(path);
  const Json* type = json.find("model_type");
  check(type != nullptr, ErrorKind::data, "{}: it has no 'model_type'; heddle knows {}", path,
        fmt::join(model_types(), ", "));
  const std::string& name = type->as_string(path + ": key 'model_type'");
  check(is_model_type(name), ErrorKind::data, "{}: model_type is '{}'; heddle knows {}{}", path,
        name, fmt::join(model_types(), ", "), did_you_mean(name, model_types()));
  return json;
}

// The config of a folder, with `head` where it has none and the family has that.
std::unique_ptr<ModelConfig> config_of(const std::string& folder, const Json& json, Head head) {
  auto config = read_model_config(json, join_path(folder, kConfigName));
  const std::vector<HeadClass> heads = config->heads();
  const bool has_head =
      std::any_of(heads.begin(), heads.end(), [&](const HeadClass& h) { return h.head == head; });
  if (config->hub.head == Head::none && has_head) config->hub.head = head;
  return config;
}

// How a translator's folder wants it searched. What that says of the start goes before `config`.
std::optional<SearchConfig> search_of(const std::string& folder, Json& config) {
  const auto family = model_config(config.get_string("model_type"));
  if (family->is_own_format() || family->hub.head != Head::target_token) return {};
  SearchConfig generation = read_generation_config(folder);
  if (const auto start = token_id(generation.decoder_start)) {
    config["decoder_start_token_id"] = *start;
  }
  return generation;
}

// The base's weights in a model of the adapter's config, then the adapter on them.
LoadedModel load_adapted(const std::string& folder, const Json& json, Head head) {
  const LoadedModel base = load_model(adapter_base(folder), {.head = head});
  nn::Parameters parameters(0);
  const std::unique_ptr<ModelConfig> config = config_of(folder, json, head);
  config->fit(*open_weights(base.path));
  std::unique_ptr<Model> model = config->make(nn::Scope(parameters));
  const std::vector<std::string> missing =
      copy_weights(base.parameters, base.model->names(), parameters, model->names());
  merge_adapter(folder, parameters, missing);
  return {folder, config->type, std::move(parameters), std::move(model)};
}

LoadedModel load_weights(const std::string& folder, const Json& json, Head head) {
  if (is_adapter_alone(folder)) return load_adapted(folder, json, head);
  const std::unique_ptr<TensorFile> file = open_weights(folder);
  file->verify();
  nn::Parameters parameters = nn::Parameters::to_be_loaded(file->elements(), file->path());
  const std::unique_ptr<ModelConfig> config = config_of(folder, json, head);
  config->fit(*file);
  std::unique_ptr<Model> model = config->make(nn::Scope(parameters));
  parameters.load(*file, model->names());
  return {folder, config->type, std::move(parameters), std::move(model)};
}

// --- tokenizers ----------------------------------------------------------------------------------

// A tokenizer of a translator of heddle's own. key: where the config has its fingerprint; size,
// size_key: the tokens that the model knows.
struct TokenizerPlace {
  const char *name, *key, *size_key;
  int64_t size;
};

Tokenizer load_own_tokenizer(const LoadedModel& m, const TokenizerPlace& place) {
  const std::string path = join_path(m.path, place.name);
  check(path_exists(path), ErrorKind::data,
        "{}: the tokenizer is missing; copy the SentencePiece model that the model was trained "
        "with there",
        path);
  Tokenizer tokenizer = Tokenizer::load(path);
  check(tokenizer.vocab_size() == place.size, ErrorKind::data,
        "{}: it has {} tokens, but the model has {} {}; it is the tokenizer of another model", path,
        tokenizer.vocab_size(), place.size_key, place.size);
  const Json* wanted = m.model->config().hub.others.find(place.key);
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

void load_own_tokenizers(LoadedModel& m) {
  const EncoderDecoderFacts& facts = m.translator().facts();
  m.tokenizer =
      load_own_tokenizer(m, {kTokenizerName, "tokenizer", "vocab_size", facts.source_vocab_size});
  if (!facts.has_two_vocabularies) return;
  m.target_tokenizer = load_own_tokenizer(
      m, {kTargetTokenizerName, "target_tokenizer", "decoder_vocab_size", facts.target_vocab_size});
}

// Its tokens may be fewer than the model's, whose table is often padded.
void check_tokens(const std::string& folder, const Tokenizer& tokenizer, int64_t tokens) {
  std::vector<std::string> names;
  for (const TokenizerFile& file : tokenizer.files()) names.push_back(file.name);
  check(tokenizer.vocab_size() <= tokens, ErrorKind::data,
        "{}: its tokenizer ({}) has ids up to {}, but the model has {} tokens; it is the tokenizer "
        "of another model",
        folder, fmt::join(names, ", "), tokenizer.vocab_size() - 1, tokens);
}

}  // namespace

std::string model_type_of(const std::string& path) {
  return read_config(find_model_dir(path)).get_string("model_type");
}

std::unique_ptr<ModelConfig> load_model_config(const std::string& path) {
  const std::string folder = find_model_dir(path);
  Json json = read_config(folder);
  search_of(folder, json);
  auto config = read_model_config(json, join_path(folder, kConfigName));
  if (!is_adapter_alone(folder)) config->fit(*open_weights(folder));
  return config;
}

void load_tokenizers(LoadedModel& m, bool is_needed) {
  const auto* translator = m.model->as<EncoderDecoder>();
  if (translator == nullptr) {
    m.tokenizer = is_needed ? Tokenizer::load(m.path) : find_tokenizer(m.path);
    return;
  }
  if (m.model->config().is_own_format()) {
    if (is_needed || path_exists(join_path(m.path, kTokenizerName))) load_own_tokenizers(m);
    return;
  }
  std::optional<TokenizerPair> found = find_tokenizer_pair(m.path);
  if (!found && is_needed) found = TokenizerPair{Tokenizer::load(m.path), {}};  // says what lacks
  if (!found) return;
  const EncoderDecoderFacts& facts = translator->facts();
  check_token_ids(facts, join_path(m.path, kConfigName));
  check_tokens(m.path, found->source, facts.source_vocab_size);
  check_tokens(m.path, found->target ? *found->target : found->source, facts.target_vocab_size);
  m.tokenizer = std::move(found->source);
  m.target_tokenizer = std::move(found->target);
}

LoadedModel load_model(const std::string& path, const LoadOptions& options) {
  const ProfilePhase phase("load model");
  const std::string folder = find_model_dir(path);
  Json json = read_config(folder);
  std::optional<SearchConfig> generation = search_of(folder, json);
  LoadedModel m = load_weights(folder, json, options.head);
  m.generation = std::move(generation);
  if (const auto* tokens = m.model->as<TokenModel>()) m.max_length = tokens->max_length();
  using Tokenizers = LoadOptions::Tokenizers;
  if (options.tokenizers != Tokenizers::none) {
    load_tokenizers(m, options.tokenizers == Tokenizers::needed);
  }
  return m;
}

LoadedModel load_translation_model(const std::string& path) {
  check(is_translator(path), ErrorKind::data,
        "{}: this {} reads one text; a translator is needed, which has a source and a target", path,
        model_type_of(path));
  return load_model(path, {.tokenizers = LoadOptions::Tokenizers::needed});
}

bool is_translator(const std::string& path) {
  return model_config(model_type_of(path))->hub.head == Head::target_token;
}

void check_reads_one_text(const std::string& path) {
  check(!is_translator(path), ErrorKind::data,
        "{}: it is a translator ({}), which heddle translate, align and eval `src` take; a model "
        "of another type is needed here",
        path, model_type_of(path));
}

}  // namespace heddle
