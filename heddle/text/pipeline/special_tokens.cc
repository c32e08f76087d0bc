// Special tokens by name: tokenizer_config.json, special_tokens_map.json, added_tokens.json.
#include "heddle/text/pipeline/special_tokens.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/text/strings/pattern.h"
#include "heddle/text/strings/strings.h"

namespace heddle {

namespace {

/// A special token, where files name it, and what it is usually called.
struct SpecialKind {
  const char* key;
  int32_t SpecialIds::*id;
  std::vector<const char*> usual;
};

const std::vector<SpecialKind> kKinds = {
    {"pad_token", &SpecialIds::pad, {"<pad>", "[PAD]"}},
    {"unk_token", &SpecialIds::unk, {"<unk>", "[UNK]", "<|endoftext|>"}},
    {"bos_token", &SpecialIds::bos, {"<s>", "<bos>", "<|begin_of_text|>", "<|endoftext|>"}},
    {"eos_token", &SpecialIds::eos, {"</s>", "<eos>", "<|end_of_text|>", "<|endoftext|>"}},
    {"cls_token", &SpecialIds::cls, {"[CLS]", "<cls>"}},
    {"sep_token", &SpecialIds::sep, {"[SEP]", "<sep>"}},
    {"mask_token", &SpecialIds::mask, {"[MASK]", "<mask>"}}};

std::optional<int32_t> find_id(const PipelineDescription& d, std::string_view content) {
  if (const auto id = d.added.find(content)) return id;
  return d.model->vocabulary().find(content);
}

/// Adds a token with its id, unless it is there already.
void add_token(AddedToken token, int64_t id, const std::string& source, PipelineDescription& d) {
  const Vocabulary& vocabulary = d.model->vocabulary();
  check_token_id(id, static_cast<size_t>(vocabulary.size()), token.content, source);
  const auto known = find_id(d, token.content);
  check(!known || *known == id, ErrorKind::data,
        "{}: token '{}' has the id {}, but the tokenizer gives it {}", source, token.content, id,
        known.value_or(-1));
  const std::string* other = vocabulary.token(static_cast<int32_t>(id));
  check(other == nullptr || *other == token.content, ErrorKind::data,
        "{}: token '{}' has the id {}, which is that of '{}'", source, token.content, id,
        other == nullptr ? "" : *other);
  if (d.added.find(token.content)) return;
  d.added.add(static_cast<int32_t>(id), std::move(token), source);
}

/// {"50256": {"content": "<|endoftext|>", ..}, ..}.
void add_decoder(const HubFiles& files, PipelineDescription& d) {
  const Json* decoder = files.config.find("added_tokens_decoder");
  if (decoder == nullptr || !decoder->is_object()) return;
  const std::string source = files.path("tokenizer_config.json") + ": added_tokens_decoder";
  for (const auto& [key, value] : decoder->as_object()) {
    int64_t id = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    check(error == std::errc() && end == key.data() + key.size(), ErrorKind::data,
          "{}: '{}' is no id", source, key);
    add_token(read_added_token(value, source), id, source, d);
  }
}

/// Every token that the files name as a special one.
std::vector<AddedToken> named_tokens(const HubFiles& files) {
  const std::string source = files.path("tokenizer_config.json");
  std::vector<AddedToken> found;
  const auto add = [&](const Json& json) { found.push_back(read_added_token(json, source)); };
  for (const SpecialKind& kind : kKinds) {
    if (const Json* value = files.special(kind.key)) add(*value);
  }
  for (const char* key : {"additional_special_tokens", "extra_special_tokens"}) {
    for (const Json* json : {&files.config, &files.special_map}) {
      const Json* list = json->find(key);
      if (list != nullptr && list->is_array()) {
        for (const Json& token : list->as_array()) add(token);
      } else if (list != nullptr && list->is_object()) {
        for (const auto& [name, token] : list->as_object()) add(token);
      }
    }
  }
  return found;
}

/// {"<extra>": 50257, ..}.
void add_list(const HubFiles& files, const std::vector<AddedToken>& named, PipelineDescription& d) {
  if (!files.added.is_object()) return;
  const std::string source = files.path("added_tokens.json");
  std::set<std::string> special;
  for (const AddedToken& token : named) special.insert(token.content);
  for (const auto& [content, id] : files.added.as_object()) {
    check(!content.empty(), ErrorKind::data, "{}: an added token is empty", source);
    const bool is_special = special.contains(content);
    add_token({.content = content, .normalized = !is_special, .special = is_special},
              id.as_int(source + ": " + content), source, d);
  }
}

/// Makes a token of the vocabulary, or a token that was added already, a special token that is
/// found in texts.
void make_special(AddedToken token, const std::string& source, PipelineDescription& d) {
  const auto id = find_id(d, token.content);
  if (!id) return;
  token.normalized = false;
  if (const AddedToken* known = d.added.find(*id)) token = *known;
  token.special = true;
  d.added.add(*id, std::move(token), source);
}

/// "" if there is no class by which transformers reads the files as heddle does.
std::string usual_config(const HubFiles& files, const PipelineDescription& d) {
  if (files.usual_class.empty()) return "";
  Json json = Json::object(
      {{"tokenizer_class", files.usual_class}, {"clean_up_tokenization_spaces", d.clean_up}});
  for (const SpecialKind& kind : kKinds) {
    const int32_t id = d.special.*kind.id;
    if (id < 0 || files.usual_class != kAnyClass) continue;
    const AddedToken* token = d.added.find(id);
    if (token == nullptr) continue;  // a token of the model, which no text is searched for
    if (!token->special) return "";  // to name it would make it special
    json[kind.key] = token->content;
  }
  return json.dump(2) + "\n";
}

}  // namespace

HubFiles HubFiles::read(const std::string& folder) {
  HubFiles result;
  result.folder = folder;
  const auto optional = [&](const char* name) {
    if (!path_exists(result.path(name))) return Json();
    return Json::parse(result.add(name), result.path(name));
  };
  result.config = optional("tokenizer_config.json");
  result.special_map = optional("special_tokens_map.json");
  result.added = optional("added_tokens.json");
  if (path_exists(result.path("config.json"))) {
    const Json config = Json::load(result.path("config.json"));
    result.model_type = string_or(config, "model_type", "", result.path("config.json"));
  }
  return result;
}

const std::string& HubFiles::add(const std::string& name) {
  const auto known = std::ranges::find(files, name, &TokenizerFile::name);
  if (known != files.end()) return known->bytes;
  files.push_back({name, read_file(path(name))});
  return files.back().bytes;
}

std::string HubFiles::path(const std::string& name) const { return join_path(folder, name); }

// tokenizer_class; "" if it is absent, or one that any files may have.
std::string HubFiles::stated_class() const {
  const std::string name = string_or(config, "tokenizer_class", "", path("tokenizer_config.json"));
  const bool is_general = name.starts_with("PreTrained") || name.starts_with("TokenizersBackend");
  return is_general ? "" : name;
}

bool HubFiles::is_class(std::string_view name) const {
  const std::string known = stated_class();
  return lower_case(known.empty() ? model_type : known).starts_with(name);
}

void HubFiles::keep_class(const std::string& name) {
  if (!stated_class().empty()) return;
  if (!config.is_object()) config = Json::object();
  config["tokenizer_class"] = name;
  const std::string bytes = config.dump(2) + "\n";
  if (!files.empty() && files[0].name == "tokenizer_config.json") {
    files[0].bytes = bytes;
  } else {
    files.insert(files.begin(), {"tokenizer_config.json", bytes});
  }
}

bool HubFiles::flag(const char* key, bool otherwise) const {
  return bool_or(config, key, otherwise, path("tokenizer_config.json"));
}

const Json* HubFiles::special(const char* key) const {
  for (const Json* json : {&config, &special_map}) {
    const Json* value = json->find(key);
    if (value != nullptr && (value->is_string() || value->is_object())) return value;
  }
  return nullptr;
}

std::string HubFiles::special_name(const char* key, const std::string& usual) const {
  const Json* value = special(key);
  if (value == nullptr) return usual;
  return read_added_token(*value, path("tokenizer_config.json") + ": " + key).content;
}

void take_config_aside(HubFiles& files, PipelineDescription& description) {
  const std::string name = "tokenizer_config.json";
  const std::string usual = usual_config(files, description);
  std::erase(files.files, TokenizerFile{name, usual});
  const bool is_other = std::ranges::count(files.files, name, &TokenizerFile::name) > 0;
  if (!is_other && !usual.empty())
    description.beside = [=] { return std::vector{TokenizerFile{name, usual}}; };
}

void add_usual(const std::vector<const char*>& names, PipelineDescription& d,
               const std::string& source) {
  for (const char* name : names) {
    const auto id = d.model->vocabulary().find(name);
    if (!id) continue;
    // "<mask>" takes the space before it: what stands there is a word and its space.
    const bool takes_space = std::string_view(name) == "<mask>";
    d.added.add(*id, {.content = name, .lstrip = takes_space, .normalized = false, .special = true},
                source);
  }
}

void apply_special_tokens(const HubFiles& files, bool is_class_known,
                          PipelineDescription& description) {
  const std::vector<AddedToken> named = named_tokens(files);
  add_decoder(files, description);
  add_list(files, named, description);
  const std::string source = files.path("tokenizer_config.json");
  for (const AddedToken& token : named) make_special(token, source, description);
  bool has_names = false;
  for (const SpecialKind& kind : kKinds) {
    if (files.special(kind.key) == nullptr) continue;
    has_names = true;
    const auto id = find_id(description, files.special_name(kind.key, ""));
    if (id) description.special.*kind.id = *id;
  }
  if (files.flag("split_special_tokens", false)) description.added.hide_special();
  for (const SpecialKind& kind : kKinds) {
    int32_t& id = description.special.*kind.id;
    const Json* value = files.config.find(kind.key);
    if ((has_names && !is_class_known) || (value != nullptr && value->is_null())) continue;
    for (const char* name : kind.usual) {
      if (id < 0) id = description.added.find(name).value_or(-1);
    }
  }
}

void lay_out_languages(HubFiles& files, PipelineDescription& description) {
  struct Kin {
    const char* name;
    const char* kept_class;
    const char* usual;
    bool is_behind;
  };
  const Kin all[] = {{"mbart50", "MBart50Tokenizer", "en_XX", false},
                     {"mbart", "MBartTokenizer", "en_XX", true},
                     {"nllb", "NllbTokenizer", "eng_Latn", files.flag("legacy_behaviour", false)},
                     {"m2m", "M2M100Tokenizer", "en", false}};
  const auto* kin = std::find_if(std::begin(all), std::end(all),
                                 [&](const Kin& k) { return files.is_class(k.name); });
  if (kin == std::end(all)) return;
  const std::string name =
      string_or(files.config, "src_lang", kin->usual, files.path("tokenizer_config.json"));
  const bool is_marked = kin->name == std::string_view("m2m");
  const auto language = find_id(description, is_marked ? "__" + name + "__" : name);
  const auto eos = find_id(description, files.special_name("eos_token", "</s>"));
  if (!language || !eos) return;
  files.keep_class(kin->kept_class);
  Template& around = description.around;
  around = eos_template(*eos);
  for (auto* items : {&around.single, &around.pair}) {
    items->insert(kin->is_behind ? items->end() : items->begin(), {.ids = {*language}});
  }
}

std::string language_of(const std::string& token) {
  const auto is = [&](size_t from, size_t to, auto&& of_kind) {
    return from < to && std::all_of(token.begin() + from, token.begin() + to, of_kind);
  };
  const auto small = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto large = [](char c) { return c >= 'A' && c <= 'Z'; };
  const size_t n = token.size(), line = token.find('_');
  if (n > 4 && token.starts_with("__") && token.ends_with("__") && is(2, n - 2, small)) {
    return token.substr(2, n - 4);
  }
  if (line != 2 && line != 3) return "";
  const bool is_country = n == line + 3 && is(line + 1, n, large);
  const bool is_script = n == line + 5 && large(token[line + 1]) && is(line + 2, n, small);
  return is(0, line, small) && (is_country || is_script) ? token : "";
}

}  // namespace heddle
