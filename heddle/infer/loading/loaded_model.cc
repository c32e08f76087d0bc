// Finding a model's folder, and saying what else a path names; config, weights and tokenizers,
// checked against each other.
#include "heddle/infer/loading/loaded_model.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/base/log.h"
#include "heddle/base/names.h"
#include "heddle/base/profile.h"
#include "heddle/infer/loading/adapter.h"
#include "heddle/infer/loading/sentence_modules.h"
#include "heddle/io/snapshot.h"
#include "heddle/io/tensor_file.h"
#include "heddle/kernels/cpu/matrix_unit.h"
#include "heddle/models/registry.h"
#include "heddle/models/timm/timm.h"
#include "heddle/text/sentencepiece/sentencepiece_tokenizer.h"
#include "heddle/text/tokenizer.h"
#include "heddle/vision/image_processor.h"

namespace heddle {
namespace {

// What to do about a training run that has no model; names the one that it was to replace.
std::string hint_of_run(const std::string& run) {
  const bool has_saved = path_exists(join_path(join_path(run, "state"), kManifestName));
  const std::string replaced = join_path(run, "replaced");
  if (!is_directory(join_path(replaced, "best"))) {
    return fmt::format(
        "this training run has not been validated yet, so it has no model; go on with heddle train "
        "{} {}",
        field_name("out"), run);
  }
  if (has_saved) {
    return fmt::format(
        "the run begun here with {} has not been validated yet, so it has no model; go on "
        "with heddle train {} {}, or name {}, which keeps the earlier run until then",
        field_name("overwrite"), field_name("out"), run, replaced);
  }
  return fmt::format(
      "a start with {} was stopped here; heddle train {} {} puts back the run that it "
      "was to replace, which lies in {}",
      field_name("overwrite"), field_name("out"), run, replaced);
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

std::string hub_hint(const std::string& path) {
  constexpr std::string_view kOthers = "-_./";
  const auto may_stand = [&](unsigned char c) {
    return std::isalnum(c) != 0 || kOthers.find(static_cast<char>(c)) != kOthers.npos;
  };
  for (const char* ending : {".bin", ".json", ".model", ".safetensors", ".txt"}) {
    if (path.ends_with(ending)) return "";  // a file
  }
  const size_t slash = path.find('/');
  const bool is_name = !path.empty() && path[0] != '/' && path[0] != '.' && path.back() != '/' &&
                       std::count(path.begin(), path.end(), '/') <= 1 &&
                       std::all_of(path.begin(), path.end(), may_stand);
  // "runs/other", where runs is there, is a path that was mistyped.
  const bool is_path = slash != path.npos && path_exists(path.substr(0, slash));
  if (!is_name || is_path || path_exists(path)) return "";
  const std::string folder = path.substr(slash == path.npos ? 0 : slash + 1);
  return fmt::format(
      ". heddle downloads nothing: a model of huggingface.co becomes a folder by "
      "`hf download {} --local-dir {}` (docs/getting-a-model.md)",
      path, folder);
}

// --- reading -------------------------------------------------------------------------------------

namespace {

// What can be asked of a model before its weights are read.
struct FoundModel {
  std::string path;
  Json config = {};                          // config.json, or what one of timm's says
  std::unique_ptr<ModelConfig> family = {};  // with its defaults, until read_config()
  bool is_of_timm = false;

  std::string source() const { return join_path(path, kConfigName); }
  bool is_translator() const { return family->hub.head == Head::target_token; }

  // Under the names of its family.
  std::unique_ptr<TensorFile> weights() const {
    std::unique_ptr<TensorFile> file = open_weights(path);
    return is_of_timm ? timm::family_weights(std::move(file), config) : std::move(file);
  }
};

FoundModel read_folder(const std::string& path) {
  FoundModel f{find_model_dir(path)};
  f.config = Json::load(f.source());
  f.is_of_timm = timm::is_config(f.config);
  if (f.is_of_timm) f.config = timm::family_config(f.config, f.source());
  check(f.config.find("model_type") != nullptr, ErrorKind::data,
        "{}: it has no 'model_type'; heddle knows {}", f.source(), fmt::join(model_types(), ", "));
  f.family = model_config(f.config.get_string("model_type", f.source()), f.source());
  return f;
}

void check_reads(LoadOptions::Reads reads, const FoundModel& folder, const std::string& path) {
  using Reads = LoadOptions::Reads;
  const bool writes_captions = folder.family->hub.head == Head::caption;
  check(reads == Reads::anything || !folder.family->reads_images(), ErrorKind::data,
        "{}: this {} reads images, and a model that reads texts is needed here; heddle {} take it",
        path, folder.family->type,
        writes_captions
            ? "caption, serve, eval --data, forward, positions and analyze"
            : "classify, detect, embed, serve, eval, forward, attention, explain and positions");
  check(reads != Reads::pairs || folder.is_translator(), ErrorKind::data,
        "{}: this {} reads one text; a translator is needed, which has a source and a target", path,
        folder.family->type);
  check(reads != Reads::one_text || !folder.is_translator(), ErrorKind::data,
        "{}: it is a translator ({}), which heddle translate, align and eval `src` take; a model "
        "of another type is needed here",
        path, folder.family->type);
}

// --- how it is searched --------------------------------------------------------------------------

// Keys that change what transformers writes and have no place here, with the value that does
// nothing.
void warn_of_others(const Json& json, const std::string& path) {
  struct Other {
    const char* key;
    double neutral;
  };
  static constexpr std::array kOthers = {Other{"begin_suppress_tokens", 0},
                                         Other{"constraints", 0},
                                         Other{"diversity_penalty", 0},
                                         Other{"encoder_no_repeat_ngram_size", 0},
                                         Other{"encoder_repetition_penalty", 1},
                                         Other{"epsilon_cutoff", 0},
                                         Other{"eta_cutoff", 0},
                                         Other{"exponential_decay_length_penalty", 0},
                                         Other{"force_words_ids", 0},
                                         Other{"guidance_scale", 1},
                                         Other{"penalty_alpha", 0},
                                         Other{"sequence_bias", 0},
                                         Other{"stop_strings", 0},
                                         Other{"token_healing", 0},
                                         Other{"typical_p", 1},
                                         Other{"watermarking_config", 0}};
  for (const auto& [key, neutral] : kOthers) {
    const Json* value = json.find(key);
    if (value == nullptr || value->is_null()) continue;
    const bool is_empty =
        *value == Json(false) || ((value->is_array() || value->is_object()) && value->size() == 0);
    if (is_empty || (value->is_number() && value->as_double() == neutral)) continue;
    log_warning(
        "{}: key '{}' changes what transformers writes; heddle has no such rule and passes over it",
        path, key);
  }
}

SearchConfig read_layer(const Json& json, const std::string& path) {
  SearchConfig config;
  (void)read_search(config, json, path);  // the other keys are the model's, or warned of
  warn_of_others(json, path);
  return config;
}

// How a folder wants targets searched; of heddle's own config.json says nothing of it.
std::optional<SearchConfig> generation_of(const FoundModel& folder) {
  if (!has_target(folder.family->hub.head)) return {};
  const Json nothing = Json::object();
  return read_generation_config(folder.path,
                                folder.family->is_own_format() ? &nothing : &folder.config);
}

// What generation_config.json says of the decoder's start goes before config.json.
void take_start(const std::optional<SearchConfig>& generation, FoundModel& folder) {
  if (!generation) return;
  const auto start = token_id(generation->decoder_start);
  if (start) folder.config["decoder_start_token_id"] = *start;
}

// --- weights -------------------------------------------------------------------------------------

// The folder's config in its family's, with `head` where it has none and the family has that.
ModelConfig& read_config(FoundModel& folder, Head head) {
  ModelConfig& config = *folder.family;
  config.read(folder.config, folder.source());
  const std::vector<HeadClass> heads = config.heads();
  const bool has_head = std::ranges::count(heads, head, &HeadClass::head) > 0;
  if (config.hub.head == Head::none && has_head) config.hub.head = head;
  return config;
}

// The base's weights in a model of the adapter's config, then the adapter on them.
LoadedModel load_adapted(FoundModel& folder, Head head) {
  const LoadedModel base = load_model(adapter_base(folder.path), {.head = head});
  nn::Parameters parameters(0);
  ModelConfig& config = read_config(folder, head);
  config.fit(*open_model_weights(base.path));
  std::unique_ptr<Model> model = config.make(nn::Scope(parameters));
  const std::vector<std::string> missing =
      copy_weights(base.parameters, *base.model, parameters, *model).alone;
  merge_adapter(folder.path, parameters, missing);
  return {folder.path, config.type, std::move(parameters), std::move(model)};
}

LoadedModel load_weights(FoundModel& folder, Head head) {
  if (is_adapter_alone(folder.path)) return load_adapted(folder, head);
  const std::unique_ptr<TensorFile> file = folder.weights();
  file->verify();
  nn::Parameters parameters = nn::Parameters::to_be_loaded(file->elements(), file->path());
  ModelConfig& config = read_config(folder, head);
  config.fit(*file);
  std::unique_ptr<Model> model = config.make(nn::Scope(parameters));
  parameters.load(*file, model->names());
  const bool is_said = config.hub.others.contains(kQuantizationKey);
  check(is_said == parameters.is_quantized(), ErrorKind::data,
        "{}: config.json has {} {}, but the weights in {} are {}quantized; these are files of two "
        "models",
        folder.path, is_said ? "the key" : "no key", kQuantizationKey, file->path(),
        is_said ? "not " : "");
  return {folder.path, config.type, std::move(parameters), std::move(model)};
}

// --- tokenizers ----------------------------------------------------------------------------------

// A tokenizer of an encoder-decoder of heddle's own. key: where the config has its fingerprint;
// size, size_key: the tokens that the model knows.
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
      load_own_tokenizer(m, {kTokenizerName, "tokenizer", "vocab_size", facts.text_vocab_size()});
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

bool is_translator(const std::string& path) { return read_folder(path).is_translator(); }
bool reads_images(const std::string& path) { return read_folder(path).family->reads_images(); }

std::unique_ptr<ModelConfig> load_model_config(const std::string& path) {
  FoundModel folder = read_folder(path);
  take_start(generation_of(folder), folder);
  read_config(folder, Head::none);
  if (!is_adapter_alone(folder.path)) folder.family->fit(*folder.weights());
  return std::move(folder.family);
}

std::unique_ptr<TensorFile> open_model_weights(const std::string& path) {
  return read_folder(path).weights();
}

SearchConfig read_generation_config(const std::string& folder, const Json* config) {
  const std::string own = join_path(folder, kGenerationName);
  const std::string general = join_path(folder, kConfigName);
  const Json below = config != nullptr      ? *config
                     : path_exists(general) ? Json::load(general)
                                            : Json::object();
  if (!path_exists(own)) return read_layer(below, general);
  // Beside it transformers takes from config.json no more than the special ids.
  Json ids = Json::object();
  for (const char* key :
       {"eos_token_id", "bos_token_id", "pad_token_id", "decoder_start_token_id"}) {
    if (const Json* id = below.find(key)) ids[key] = *id;
  }
  SearchConfig search = read_layer(ids, general);
  lay_over(search, read_layer(Json::load(own), own));
  return search;
}

void load_tokenizers(LoadedModel& m, bool is_needed) {
  const auto* translator = m.model->as<EncoderDecoder>();
  if (is_needed && translator == nullptr) m.tokens();  // says what it reads, if that is no text
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
  FoundModel folder = read_folder(path);
  check_reads(options.reads, folder, path);
  std::optional<SearchConfig> generation = generation_of(folder);
  take_start(generation, folder);
  LoadedModel m = load_weights(folder, options.head);
  m.generation = std::move(generation);
  if (const auto* tokens = m.model->as<TokenModel>()) m.max_length = tokens->max_length();
  if (const auto* both = m.model->as<EncoderDecoder>()) m.max_length = both->facts().longest_source;
  using Tokenizers = LoadOptions::Tokenizers;
  if (options.tokenizers != Tokenizers::none) {
    load_tokenizers(m, options.tokenizers == Tokenizers::needed);
  }
  return m;
}

LoadedModel load_translation_model(const std::string& path) {
  return load_model(
      path, {.tokenizers = LoadOptions::Tokenizers::needed, .reads = LoadOptions::Reads::pairs});
}

// --- number formats ------------------------------------------------------------------------------

Precision resolve_precision(const std::string& name) {
  if (name == "f32") return DType::f32;
  if (name == "bf16") return DType::bf16;
  check(name == "auto" || name == "int8", ErrorKind::usage,
        "`precision` is '{}'; it must be f32, bf16, int8 or auto", name);
  return {has_bf16_instructions() ? DType::bf16 : DType::f32, name == "int8"};
}

std::string precision_name(const Precision& precision) {
  return precision.int8 ? "int8" : dtype_name(precision.compute);
}

}  // namespace heddle
