// Reading tokenizer.json, the file of Hugging Face's `tokenizers`.
#include "heddle/text/pipeline/pipeline.h"

#include <algorithm>

#include "heddle/base/error.h"
#include "heddle/text/strings/pattern.h"
#include "heddle/text/strings/strings.h"

namespace heddle {
namespace {

const Json kNull;

const Json& or_null(const Json& json, const char* key) {
  const Json* value = json.find(key);
  return value == nullptr ? kNull : *value;
}

Merge split_merge(std::string_view text, const std::string& where) {
  const size_t space = text.find(' ');
  check(space != text.npos && text.find(' ', space + 1) == text.npos, ErrorKind::data,
        "{}: '{}' is no merge; two tokens with a space between are needed", where, text);
  return {std::string(text.substr(0, space)), std::string(text.substr(space + 1))};
}

std::vector<Merge> read_merges(const Json& json, const std::string& source) {
  std::vector<Merge> merges;
  const Json::Array& list = json.at("merges", source).as_array(source + ": merges");
  merges.reserve(list.size());
  for (const Json& merge : list) {
    const std::string where = fmt::format("{}: merge {}", source, merges.size() + 1);
    if (merge.is_string()) {
      merges.push_back(split_merge(merge.as_string(), where));
      continue;
    }
    const std::vector<std::string> parts = merge.as_strings(where);
    check(parts.size() == 2, ErrorKind::data, "{} is {}; two tokens are needed", where,
          merge.describe());
    merges.emplace_back(parts[0], parts[1]);
  }
  return merges;
}

std::unique_ptr<SubwordModel> read_bpe(const Json& json, const std::string& source) {
  BpeOptions options;
  options.unk = string_or(json, "unk_token", "", source);
  options.continuing_subword_prefix = string_or(json, "continuing_subword_prefix", "", source);
  options.end_of_word_suffix = string_or(json, "end_of_word_suffix", "", source);
  options.fuse_unk = bool_or(json, "fuse_unk", false, source);
  options.byte_fallback = bool_or(json, "byte_fallback", false, source);
  options.ignore_merges = bool_or(json, "ignore_merges", false, source);
  return make_bpe(Vocabulary::of_json(json.at("vocab", source), source), read_merges(json, source),
                  std::move(options), source);
}

std::unique_ptr<SubwordModel> read_word_piece(const Json& json, const std::string& source) {
  WordPieceOptions options;
  options.unk = string_or(json, "unk_token", options.unk, source);
  options.continuing_subword_prefix =
      string_or(json, "continuing_subword_prefix", options.continuing_subword_prefix, source);
  options.max_characters = int_or(json, "max_input_chars_per_word", options.max_characters, source);
  check(options.max_characters >= 0, ErrorKind::data,
        "{}: max_input_chars_per_word is {}; a number of at least 0 is needed", source,
        options.max_characters);
  return make_word_piece(Vocabulary::of_json(json.at("vocab", source), source), std::move(options),
                         source);
}

std::unique_ptr<SubwordModel> read_unigram(const Json& json, const std::string& source) {
  std::vector<std::string> tokens;
  std::vector<double> scores;
  for (const Json& entry : json.at("vocab", source).as_array(source + ": vocab")) {
    const std::string where = fmt::format("{}: token {}", source, tokens.size());
    const Json::Array& pair = entry.as_array(where);
    check(pair.size() == 2, ErrorKind::data, "{} is {}; a token and its score are needed", where,
          entry.describe());
    tokens.push_back(pair[0].as_string(where));
    scores.push_back(pair[1].as_double(where));
  }
  UnigramOptions options;
  const Json& unk = or_null(json, "unk_id");
  if (!unk.is_null()) options.unk = unk.as_int(source + ": unk_id");
  options.byte_fallback = bool_or(json, "byte_fallback", false, source);
  return make_unigram(Vocabulary::of_list(std::move(tokens), source), std::move(scores), options,
                      source);
}

/// Old files leave the type of the model out.
std::string model_type(const Json& model, const std::string& source) {
  if (model.contains("type")) return model.get_string("type", source);
  if (model.contains("merges")) return "BPE";
  if (or_null(model, "vocab").is_array()) return "Unigram";
  return model.contains("max_input_chars_per_word") ? "WordPiece" : "WordLevel";
}

bool mentions(const Json& component, const char* type) {
  if (component.is_array()) {
    for (const Json& part : component.as_array()) {
      if (mentions(part, type)) return true;
    }
  }
  if (!component.is_object()) return false;
  for (const auto& [key, value] : component.as_object()) {
    if (key == "type" && value.is_string() && value.as_string() == type) return true;
    if (mentions(value, type)) return true;
  }
  return false;
}

void read_model(const Json& json, const std::string& source, PipelineDescription& result) {
  const Json& model = json.at("model", source);
  check(model.is_object(), ErrorKind::data, "{}: the model is {}; an object is needed", source,
        model.describe());
  const std::string type = model_type(model, source);
  const std::string where = source + ": " + type;
  if (type == "BPE") {
    const bool is_bytes = mentions(or_null(json, "pre_tokenizer"), "ByteLevel") ||
                          mentions(or_null(json, "normalizer"), "ByteLevel");
    result.kind = is_bytes                                        ? "byte-level BPE"
                  : bool_or(model, "byte_fallback", false, where) ? "BPE with byte fallback"
                                                                  : "BPE";
    result.model = read_bpe(model, where);
  } else if (type == "WordPiece") {
    result.kind = type;
    result.model = read_word_piece(model, where);
  } else if (type == "Unigram") {
    result.kind = "unigram";
    result.model = read_unigram(model, where);
  } else if (type == "WordLevel") {
    result.kind = "word level";
    result.model = make_word_level(Vocabulary::of_json(model.at("vocab", where), where),
                                   string_or(model, "unk_token", "<unk>", where), where);
  } else {
    fail_component("model", type, "BPE, WordPiece, Unigram and WordLevel", source);
  }
}

void read_added(const Json& json, const std::string& source, PipelineDescription& d) {
  const Json& list = or_null(json, "added_tokens");
  if (list.is_null()) return;
  const Vocabulary& vocabulary = d.model->vocabulary();
  const Json::Array& tokens = list.as_array(source + ": added_tokens");
  const size_t entries = static_cast<size_t>(vocabulary.size()) + tokens.size();
  for (const Json& one : tokens) {
    AddedToken token = read_added_token(one, source + ": added_tokens");
    const int64_t id = one.get_int("id", source + ": added_tokens");
    check_token_id(id, entries, token.content, source + ": added_tokens");
    const auto known = vocabulary.find(token.content);
    check(!known || *known == id, ErrorKind::data,
          "{}: added token '{}' has the id {}, but {} in the model's vocabulary", source,
          token.content, id, known.value_or(-1));
    const std::string* other = vocabulary.token(static_cast<int32_t>(id));
    check(other == nullptr || *other == token.content, ErrorKind::data,
          "{}: added token '{}' has the id {}, which is that of '{}'", source, token.content, id,
          other == nullptr ? "" : *other);
    d.added.add(static_cast<int32_t>(id), std::move(token), source);
  }
}

/// Ids that the post-processor adds must be there.
void check_template(const PipelineDescription& result, const std::string& source) {
  const int64_t size =
      std::max<int64_t>(result.model->vocabulary().size(), result.added.largest_id() + 1);
  for (const auto* items : {&result.around.single, &result.around.pair}) {
    for (const Template::Item& item : *items) {
      for (const int32_t id : item.ids) {
        check(id < size, ErrorKind::data,
              "{}: the post_processor adds the id {}, but the ids are 0 to {}", source, id,
              size - 1);
      }
    }
  }
}

using Items = std::vector<Template::Item>;

int32_t token_id(const Json& value, const std::string& source) {
  const int64_t id = value.as_int(source);
  check(id >= 0 && id <= INT32_MAX, ErrorKind::data, "{}: {} is no token id", source, id);
  return static_cast<int32_t>(id);
}

int32_t type_id(const Json& item, const std::string& source) {
  const int64_t id = int_or(item, "type_id", 0, source);
  check(id >= 0 && id <= INT32_MAX, ErrorKind::data, "{}: the type_id {} is negative or too large",
        source, id);
  return static_cast<int32_t>(id);
}

/// ["[SEP]", 102].
int32_t token_of_pair(const Json& json, const char* key, const std::string& source) {
  const Json::Array& pair = json.at(key, source).as_array(source + ": " + key);
  check(pair.size() == 2, ErrorKind::data, "{}: {} is {}; a token and its id are needed", source,
        key, json.at(key).describe());
  return token_id(pair[1], source + ": " + key);
}

Items read_items(const Json& json, const char* key, const std::string& source) {
  const std::string where = source + ": " + key;
  Items items;
  for (const Json& one : json.at(key, source).as_array(where)) {
    Template::Item item;
    if (const Json* text = one.find("Sequence")) {
      const std::string& id = text->get_string("id", where);
      check(id == "A" || (id == "B" && std::string_view(key) == "pair"), ErrorKind::data,
            "{}: there is no sequence '{}'", where, id);
      item.text = id == "A" ? 0 : 1;
      item.type = type_id(*text, where);
    } else {
      const Json& special = one.at("SpecialToken", where);
      const std::string& name = special.get_string("id", where);
      item.type = type_id(special, where);
      const Json& known = json.at("special_tokens", source);
      check(known.contains(name), ErrorKind::data,
            "{}: the special token '{}' is not among its special_tokens", where, name);
      for (const Json& id : known.at(name).at("ids", where).as_array(where)) {
        item.ids.push_back(token_id(id, where));
      }
    }
    items.push_back(std::move(item));
  }
  return items;
}

bool adds_ids(const Template& around) {
  const auto has_ids = [](const Template::Item& item) { return !item.ids.empty(); };
  return std::ranges::any_of(around.single, has_ids) || std::ranges::any_of(around.pair, has_ids);
}

/// From the "post_processor" of a tokenizer.json: TemplateProcessing, BertProcessing,
/// RobertaProcessing, ByteLevel (which concerns offsets only) and Sequence of these, at most one of
/// which adds ids. Gives the ids of cls and sep where it names them.
/// Errors: data, naming what is unknown or wrong.
Template read_post_processor(const Json& json, SpecialIds& special, const std::string& source) {
  if (json.is_null()) return {};
  const std::string& type = component_type(json, source + ": post_processor");
  const std::string where = source + ": " + type;
  if (type == "ByteLevel") return {};
  if (type == "TemplateProcessing") {
    return {.single = read_items(json, "single", where), .pair = read_items(json, "pair", where)};
  }
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    special.cls = token_of_pair(json, "cls", where);
    special.sep = token_of_pair(json, "sep", where);
    return type == "BertProcessing" ? bert_template(special.cls, special.sep)
                                    : roberta_template(special.cls, special.sep);
  }
  if (type == "Sequence") {
    Template result;
    for (const Json& part : sequence_of(json, "processors", where)) {
      Template one = read_post_processor(part, special, where);
      if (!adds_ids(one)) continue;
      check(!adds_ids(result), ErrorKind::data,
            "{}: two of its post-processors add tokens, which is not supported", where);
      result = std::move(one);
    }
    return result;
  }
  fail_component("post_processor", type,
                 "TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel and Sequence",
                 source);
}

}  // namespace

PipelineDescription read_tokenizer_json(const Json& json, const std::string& source) {
  check(json.is_object() && json.contains("model"), ErrorKind::data,
        "{}: it has no \"model\", so it is no tokenizer.json", source);
  PipelineDescription result;
  read_model(json, source, result);
  read_added(json, source, result);
  result.normalizer = read_normalizer(or_null(json, "normalizer"), source);
  result.pre_tokenizer = read_pre_tokenizer(or_null(json, "pre_tokenizer"), source);
  result.decoder = read_token_decoder(or_null(json, "decoder"), source);
  result.around = read_post_processor(or_null(json, "post_processor"), result.special, source);
  check_template(result, source);
  return result;
}

std::vector<Merge> merges_of_lines(std::string_view text, const std::string& source) {
  std::vector<Merge> merges;
  const std::vector<std::string_view> lines = lines_of(text);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].empty() || lines[i].starts_with("#version")) continue;
    merges.push_back(split_merge(lines[i], fmt::format("{}: line {}", source, i + 1)));
  }
  return merges;
}

Template bert_template(int32_t cls, int32_t sep) {
  return {.single = {{.ids = {cls}}, {.text = 0}, {.ids = {sep}}},
          .pair = {{.ids = {cls}},
                   {.text = 0},
                   {.ids = {sep}},
                   {.text = 1, .type = 1},
                   {.type = 1, .ids = {sep}}}};
}

Template eos_template(int32_t eos) {
  return {.single = {{.text = 0}, {.ids = {eos}}},
          .pair = {{.text = 0}, {.text = 1}, {.ids = {eos}}}};
}

Template roberta_template(int32_t cls, int32_t sep) {
  return {.single = {{.ids = {cls}}, {.text = 0}, {.ids = {sep}}},
          .pair = {{.ids = {cls}}, {.text = 0}, {.ids = {sep, sep}}, {.text = 1}, {.ids = {sep}}}};
}

}  // namespace heddle
