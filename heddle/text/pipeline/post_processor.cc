// The post-processors of tokenizer.json.
#include "heddle/text/pipeline/post_processor.h"

#include <algorithm>

#include "heddle/base/error.h"
#include "heddle/text/strings/pattern.h"

namespace heddle {

namespace {

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

}  // namespace

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

}  // namespace heddle
