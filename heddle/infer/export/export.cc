// Models in a form that Hugging Face's transformers loads: Marian for translators, else their own.
#include "heddle/infer/export/export.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <list>
#include <system_error>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/infer/export/export_folder.h"
#include "heddle/infer/loading/model_dir.h"
#include "heddle/infer/loading/stack_model.h"
#include "heddle/io/safetensors.h"
#include "heddle/models/marian.h"
#include "heddle/tensor/convert.h"
#include "heddle/text/sentencepiece/marian_tokenizer.h"
#include "heddle/text/strings/pattern.h"
#include "heddle/text/tokenizer_folder.h"

namespace heddle {
namespace {

// What travels along as it is, where it is there.
constexpr std::array kBesideWeights = {kGenerationName,
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

// Types that newer releases of transformers have dropped, and the first without.
constexpr std::array<std::pair<const char*, const char*>, 1> kDropped = {{{"transfo-xl", "4.36"}}};

void write_json(const std::string& folder, const char* name, const Json& json) {
  write_file_atomic(join_path(folder, name), json.dump(2) + "\n");
}

void copy_files(const std::string& from, const std::string& to) {
  for (const char* name : kBesideWeights) {
    const std::string path = join_path(from, name);
    if (path_exists(path)) write_file_atomic(join_path(to, name), read_file(path));
  }
}

void write_tensors(const std::string& path, const std::vector<NamedFloats>& tensors, DType dtype) {
  std::list<std::vector<std::byte>> bytes;
  std::vector<NamedTensorView> views;
  for (const NamedFloats& t : tensors) {
    bytes.push_back(convert_from_floats(t.values, dtype, t.name));
    views.push_back({t.name, dtype, t.shape, bytes.back()});
  }
  write_safetensors(path, std::move(views), {{"format", "pt"}});
}

// --- heddle's translators as Marian --------------------------------------------------------------

Json vocabulary_json(const Tokenizer& tokenizer) {
  Json json = Json::object();
  for (int64_t id = 0; id < tokenizer.vocab_size(); ++id) {
    json[tokenizer.token(static_cast<int32_t>(id))] = id;
  }
  return json;
}

std::string token_or(const Tokenizer& tokenizer, int32_t id, const char* otherwise) {
  return id < 0 ? otherwise : tokenizer.token(id);
}

void write_marian_tokenizer(const std::string& out, const TranslationModel& model) {
  const Tokenizer& source = model.tokenizer.value();
  const Tokenizer& target = model.target();
  const bool is_separate = model.target_tokenizer.has_value();
  write_file_atomic(join_path(out, kMarianSourceName), source.model_bytes());
  write_file_atomic(join_path(out, kMarianTargetName), target.model_bytes());
  write_json(out, kMarianVocabName, vocabulary_json(source));
  if (is_separate) write_json(out, kMarianTargetVocabName, vocabulary_json(target));
  Json json = Json::object();
  json["tokenizer_class"] = "MarianTokenizer";
  json["eos_token"] = token_or(source, source.eos_id(), "</s>");
  json["unk_token"] = token_or(source, source.unk_id(), "<unk>");
  json["pad_token"] = token_or(source, source.pad_id(), "<pad>");
  json["model_max_length"] = model.config.max_position_embeddings;
  json["separate_vocabs"] = is_separate;
  write_json(out, "tokenizer_config.json", json);
}

// Greedy search, as `heddle translate` does without flags, and the tokens that it never takes.
Json marian_generation_json(const TranslationModel& model) {
  const TransformerConfig& c = model.config;
  Json json = Json::object();
  json["pad_token_id"] = c.pad_token_id;
  json["bos_token_id"] = c.bos_token_id;
  json["eos_token_id"] = c.eos_token_id;
  json["decoder_start_token_id"] = c.decoder_start_token_id;
  json["forced_eos_token_id"] = c.eos_token_id;
  json["max_length"] = c.max_position_embeddings;
  json["num_beams"] = 1;
  std::vector<int64_t> banned = {c.pad_token_id, c.bos_token_id, c.decoder_start_token_id};
  if (model.tokenizer && model.target().unk_id() >= 0) banned.push_back(model.target().unk_id());
  std::sort(banned.begin(), banned.end());
  banned.erase(std::unique(banned.begin(), banned.end()), banned.end());
  std::erase(banned, c.eos_token_id);
  json["bad_words_ids"] = Json::array();
  for (const int64_t id : banned) json["bad_words_ids"].push_back(std::vector<int64_t>{id});
  return json;
}

Exported export_translator(const std::string& folder, const std::string& out, DType dtype) {
  const TranslationModel model =
      load_translation_model(folder, {.need_tokenizer = has_translation_tokenizer(folder)});
  const bool is_ours = model.type == kTransformerType;
  const std::string source = join_path(folder, kConfigName);
  Json config = is_ours ? marian_config_json(model.config, source) : Json::load(source);
  config.erase("dtype");  // the newer name
  config["torch_dtype"] = torch_dtype_name(dtype);
  make_directories(out);
  if (is_ours) {
    write_json(out, kGenerationName, marian_generation_json(model));
    if (model.tokenizer) write_marian_tokenizer(out, model);
  } else {
    copy_files(folder, out);
  }
  write_json(out, kConfigName, config);
  write_tensors(join_path(out, kWeightsName), marian_tensors(model.config, model.parameters),
                dtype);
  Exported result{"marian", ""};
  if (!model.tokenizer) result.note = "the model has no tokenizer, so none was written";
  return result;
}

// Puts beside a tokenizer of heddle's own what transformers needs to read it, which runs of before
// lack. Returns what transformers cannot read, "" if nothing. Errors: those of find_tokenizer().
std::string complete_tokenizer(const StackModel& stack, const std::string& out) {
  const std::string path = join_path(stack.path, "tokenizer_config.json");
  const Json config = path_exists(path) ? Json::load(path) : Json::object();
  const std::string name = string_or(config, "tokenizer_class", "SentencePiece", path);
  if (name != "SentencePiece") return "";
  const std::optional<Tokenizer> tokenizer = find_tokenizer(stack.path);
  if (!tokenizer) return "";
  tokenizer->save_folder(out);
  if (tokenizer->kind() == "SentencePiece" && !path_exists(join_path(out, "tokenizer.json"))) {
    return "transformers cannot read the tokenizer, whose SentencePiece model has what "
           "tokenizer.json cannot say; give it ids";
  }
  return "";
}

// What is to be said of the tokenizer's files; those that heddle cannot read are copied all the
// same: transformers may know them.
std::string tokenizer_note(const StackModel& stack, const std::string& out) {
  const auto has = [&](const char* name) { return path_exists(join_path(out, name)); };
  std::string note;
  try {
    note = complete_tokenizer(stack, out);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::data) throw;
    return fmt::format("the tokenizer is copied as it is, since heddle cannot read it: {}",
                       e.what());
  }
  // transformers 5.23 looks for files of Mistral's own, and passes the class over.
  const bool is_mistral = stack.type == "mistral" || stack.type == "mixtral";
  if (note.empty() && is_mistral && has("tokenizer_config.json") && !has("tokenizer.json")) {
    const std::string path = join_path(out, "tokenizer_config.json");
    note = fmt::format(
        "transformers' AutoTokenizer misreads a {} without tokenizer.json; open its "
        "tokenizer by the class, {}",
        stack.type, string_or(Json::load(path), "tokenizer_class", "none", path));
  }
  return note;
}

Exported export_stack(const std::string& folder, const std::string& out, DType dtype) {
  const StackModel stack = load_stack_model(folder);
  save_stack_model(out, *stack.model, stack.parameters, dtype);
  copy_files(stack.path, out);
  Exported result{stack.type, tokenizer_note(stack, out)};
  for (const auto& [type, version] : kDropped) {
    if (stack.type != type) continue;
    if (!result.note.empty()) result.note += "; ";
    result.note +=
        fmt::format("transformers has no {} since {}; older releases load it", type, version);
  }
  return result;
}

}  // namespace

Exported export_model(const std::string& path, const std::string& out,
                      const ExportOptions& options) {
  check(options.format == "transformers" || options.format == "marian", ErrorKind::usage,
        "--format is '{}'; it must be transformers or marian", options.format);
  const std::string folder = find_model_dir(path);
  const std::string type = model_type_of(folder);
  check(options.format != "marian" || is_translator_type(type), ErrorKind::usage,
        "--format marian is for translators; {} is a {}, which --format transformers keeps", path,
        type);
  std::error_code none_there;  // where `out` does not exist yet
  check(!std::filesystem::equivalent(out, folder, none_there), ErrorKind::usage,
        "{}: the model itself is there; choose another folder", out);
  ExportFolder to{out, options.overwrite, {kBesideWeights.begin(), kBesideWeights.end()}};
  check_export_folder(to);
  Exported exported;
  write_export_folder(to, [&](const std::string& made) {
    exported = is_translator_type(type) ? export_translator(folder, made, options.dtype)
                                        : export_stack(folder, made, options.dtype);
  });
  return exported;
}

}  // namespace heddle
