// A string or a regular expression to look for, and other parts that components share.
#include "heddle/text/strings/pattern.h"

#include "heddle/base/error.h"
#include "heddle/text/strings/strings.h"

namespace heddle {

Pattern Pattern::read(const Json& json, const std::string& source) {
  Pattern result;
  if (const Json* literal = json.find("String")) {
    result.literal_ = literal->as_string(source + ": pattern");
  } else if (const Json* regex = json.find("Regex")) {
    result.regex_ = std::make_shared<Regex>(regex->as_string(source + ": pattern"), source);
  } else {
    fail(ErrorKind::data,
         "{}: the pattern is {}; {{\"String\": ..}} or {{\"Regex\": ..}} is needed", source,
         json.describe());
  }
  return result;
}

std::vector<std::pair<size_t, size_t>> Pattern::find_all(std::string_view text) const {
  if (regex_) return regex_->find_all(text);
  std::vector<std::pair<size_t, size_t>> matches;
  if (literal_.empty()) return matches;
  for (size_t at = 0; (at = text.find(literal_, at)) != text.npos; at += literal_.size()) {
    matches.emplace_back(at, at + literal_.size());
  }
  return matches;
}

std::string Pattern::replace(std::string_view text, std::string_view content, size_t most) const {
  std::string result;
  size_t at = 0;
  for (const auto& [begin, end] : find_all(text)) {
    check_growth(result.size() + begin - at + content.size(), most);
    result.append(text.substr(at, begin - at)).append(content);
    at = end;
  }
  return result.append(text.substr(at));
}

const std::string& component_type(const Json& json, const std::string& source) {
  check(json.is_object() && json.contains("type"), ErrorKind::data,
        "{}: {} is no component; an object with a \"type\" is needed", source, json.describe());
  return json.get_string("type", source);
}

void fail_component(const char* what, const std::string& type, const std::string& known,
                    const std::string& source) {
  fail(ErrorKind::data, "{}: the {} '{}' is not supported; there are {}", source, what, type,
       known);
}

const Json::Array& sequence_of(const Json& json, const char* list, const std::string& source) {
  return json.at(list, source).as_array(source + ": " + list);
}

bool bool_or(const Json& json, const char* key, bool otherwise, const std::string& source) {
  const Json* value = json.find(key);
  return value == nullptr || value->is_null() ? otherwise : value->as_bool(source + ": " + key);
}

std::string string_or(const Json& json, const char* key, const std::string& otherwise,
                      const std::string& source) {
  const Json* value = json.find(key);
  return value == nullptr || value->is_null() ? otherwise : value->as_string(source + ": " + key);
}

int64_t int_or(const Json& json, const char* key, int64_t otherwise, const std::string& source) {
  const Json* value = json.find(key);
  return value == nullptr || value->is_null() ? otherwise : value->as_int(source + ": " + key);
}

}  // namespace heddle
