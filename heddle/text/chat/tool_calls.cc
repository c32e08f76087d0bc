// Marks, then JSON whose end is where its first bracket closes.
#include "heddle/text/chat/tool_calls.h"

#include <algorithm>
#include <optional>

#include "heddle/base/error.h"
#include "heddle/text/strings/strings.h"

namespace heddle {
namespace {

constexpr std::string_view kTag = "<tool_call>", kEndTag = "</tool_call>", kList = "[TOOL_CALLS]",
                           kPython = "<|python_tag|>";
constexpr std::string_view kSpace = " \t\r\n";
constexpr int kDeepest = 32;

std::string_view mark_of(ToolCallForm form) {
  return form == ToolCallForm::tagged ? kTag : form == ToolCallForm::listed ? kList : kPython;
}
const char* arguments_key(ToolCallForm form) {
  return form == ToolCallForm::bare ? "parameters" : "arguments";
}

// Bytes of the JSON object at the beginning of a text; 0: it does not end there yet, npos: it is
// none.
size_t object_length(std::string_view text) {
  std::vector<char> open;
  bool is_in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (is_in_string) {
      if (c == '\\') ++i;
      is_in_string = c != '"';
    } else if (c == '"') {
      is_in_string = true;
    } else if (c == '{' || c == '[') {
      open.push_back(c == '{' ? '}' : ']');
      if (std::ssize(open) > kDeepest) return text.npos;
    } else if (c == '}' || c == ']') {
      if (open.back() != c) return text.npos;
      open.pop_back();
    }
    if (open.empty()) return i == 0 ? text.npos : i + 1;
  }
  return 0;
}

std::optional<ToolCall> call_of(std::string_view text, const std::vector<std::string>& names) try {
  const Json json = Json::parse(text, "a call");
  const Json* name = json.find("name");
  const Json* arguments = json.find("arguments");
  if (arguments == nullptr) arguments = json.find("parameters");
  const bool is_call = name != nullptr && name->is_string() && arguments != nullptr &&
                       arguments->is_object() &&
                       std::ranges::find(names, name->as_string()) != names.end();
  if (!is_call) return {};
  return ToolCall{name->as_string(), arguments->dump()};
} catch (const Error&) {
  return {};
}

// References within a schema, when it stands as "prefix.." of another one.
Json with_references(const Json& schema, const std::string& prefix) {
  if (schema.is_array()) {
    Json list = Json::array();
    for (const Json& item : schema.as_array()) list.push_back(with_references(item, prefix));
    return list;
  }
  if (!schema.is_object()) return schema;
  Json object = Json::object();
  for (const auto& [key, value] : schema.as_object()) {
    object[key] = with_references(value, prefix);
    if (key != "$ref" || !value.is_string()) continue;
    const std::string& to = value.as_string();
    for (const std::string_view defined : {"#/$defs/", "#/definitions/"}) {
      if (to.starts_with(defined)) object[key] = "#/$defs/" + prefix + to.substr(defined.size());
    }
  }
  return object;
}

}  // namespace

ToolCallForm tool_call_form(std::string_view source) {
  if (source.find(kTag) != source.npos) return ToolCallForm::tagged;
  return source.find(kList) != source.npos ? ToolCallForm::listed : ToolCallForm::bare;
}

std::vector<std::string> tool_names(const Json& tools) {
  check(tools.is_array(), ErrorKind::data, "`tools` is {}; a list is needed", tools.describe());
  std::vector<std::string> names;
  for (const Json& tool : tools.as_array()) {
    const std::string where = fmt::format("`tools`[{}]", names.size());
    check(tool.is_object(), ErrorKind::data, "{} is {}; an object is needed", where,
          tool.describe());
    check(tool.get_string("type", where) == "function", ErrorKind::data,
          "{} has the type '{}'; only functions are there", where, tool.get_string("type", where));
    const Json& function = tool.at("function", where);
    check(function.is_object(), ErrorKind::data, "{}: `function` is {}; an object is needed", where,
          function.describe());
    const std::string& name = function.get_string("name", where);
    const bool is_plain =
        !name.empty() && name.size() <= 64 && std::ranges::all_of(name, [](char c) {
          return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                 c == '_' || c == '-' || c == '.';
        });
    check(is_plain, ErrorKind::data,
          "{} is called '{}'; a name has 1 to 64 letters, digits, _, - and .", where, name);
    check(std::ranges::find(names, name) == names.end(), ErrorKind::data,
          "two of the `tools` are called '{}'", name);
    names.push_back(name);
  }
  return names;
}

Json tool_call_schema(const Json& tools, const std::string& name, ToolCallForm form) {
  Json calls = Json::array(), definitions = Json::object();
  size_t number = 0;
  for (const Json& tool : tools.as_array()) {
    const Json& function = tool.at("function");
    const std::string prefix = fmt::format("tool{}.", number++);
    if (!name.empty() && function.get_string("name") != name) continue;
    const Json* given = function.find("parameters");
    Json parameters = Json::object({{"const", Json::object()}});  // none
    if (given != nullptr && !given->is_null()) parameters = with_references(*given, prefix);
    Json own = Json::object();
    for (const char* key : {"$defs", "definitions"}) {
      const Json* defined = parameters.find(key);
      if (defined == nullptr) continue;
      for (const auto& [one, schema] : defined->as_object()) definitions[prefix + one] = schema;
    }
    for (const auto& [key, value] : parameters.as_object()) {
      if (key != "$defs" && key != "definitions") own[key] = value;
    }
    Json properties =
        Json::object({{"name", Json::object({{"const", function.get_string("name")}})}});
    properties[arguments_key(form)] = std::move(own);
    Json call = Json::object({{"type", "object"}, {"properties", std::move(properties)}});
    call["required"] = std::vector<std::string>{"name", arguments_key(form)};
    call["additionalProperties"] = false;
    calls.push_back(std::move(call));
  }
  Json schema = Json::object({{"anyOf", std::move(calls)}});
  if (form == ToolCallForm::listed) {
    schema = Json::object({{"type", "array"}, {"items", std::move(schema)}});
    schema["minItems"] = 1, schema["maxItems"] = 1;
  }
  if (definitions.size() > 0) schema["$defs"] = std::move(definitions);
  return schema;
}

std::string tool_call_opening(ToolCallForm form) {
  return form == ToolCallForm::tagged   ? std::string(kTag) + "\n"
         : form == ToolCallForm::listed ? std::string(kList)
                                        : "";
}

ToolCallReader::ToolCallReader(ToolCallForm form, std::vector<std::string> names, bool is_open,
                               size_t most)
    : form_(form), names_(std::move(names)), most_(most), is_within_(is_open) {}

void ToolCallReader::read(std::string_view text) {
  waiting_ += text;
  while (!waiting_.empty() && step()) {
  }
  if (count_ >= most_) waiting_.clear();
}

void ToolCallReader::end() {
  if (count_ >= most_) return;
  // Between calls and behind them stands nothing but white space and what ends them.
  const bool is_behind_call = count_ > 0 && opened_.empty();
  const size_t first = std::min(waiting_.find_first_not_of(kSpace), waiting_.size());
  const bool is_end_tag = form_ == ToolCallForm::tagged && is_within_ &&
                          kEndTag.starts_with(std::string_view(waiting_).substr(first));
  const bool is_rest = waiting_.find_first_not_of(std::string(kSpace) + "],;") == waiting_.npos;
  if (!is_behind_call || !(is_rest || is_end_tag)) text_ += opened_ + waiting_;
  opened_.clear(), waiting_.clear();
}

void ToolCallReader::pass_text(size_t bytes) {
  const std::string_view passed = std::string_view(waiting_).substr(0, bytes);
  has_begun_ = has_begun_ || passed.find_first_not_of(kSpace) != passed.npos;
  text_ += passed;
  waiting_.erase(0, bytes);
}

// Goes on in what waits. returns: whether that may go on
bool ToolCallReader::step() {
  if (count_ >= most_) return false;
  if (is_within_) return take_object();
  const std::string_view mark = mark_of(form_);
  if (form_ == ToolCallForm::bare && !has_begun_) {  // a call may stand alone
    const size_t first = waiting_.find_first_not_of(kSpace);
    if (first == waiting_.npos) return false;
    if (waiting_[first] == '{') {
      opened_ = waiting_.substr(0, first);
      waiting_.erase(0, first);
      return is_within_ = true;
    }
  }
  const size_t at = waiting_.find(mark);
  if (at != waiting_.npos) {
    // White space before a call is none of the text's.
    const size_t last = std::string_view(waiting_).substr(0, at).find_last_not_of(kSpace);
    const size_t passed = last == waiting_.npos ? 0 : last + 1;
    const size_t opened = at - passed + mark.size();
    pass_text(passed);
    opened_ = waiting_.substr(0, opened);
    waiting_.erase(0, opened);
    return is_within_ = true;
  }
  const size_t passed = waiting_.size() - begun_at_end(waiting_, mark);
  const size_t last = std::string_view(waiting_).substr(0, passed).find_last_not_of(kSpace);
  pass_text(last == waiting_.npos ? 0 : last + 1);
  return false;
}

bool ToolCallReader::take_object() {
  const auto drop = [&](size_t bytes) {
    if (!opened_.empty()) opened_ += waiting_.substr(0, bytes);
    waiting_.erase(0, bytes);
  };
  const bool is_list = form_ == ToolCallForm::listed;
  size_t first = waiting_.find_first_not_of(kSpace);
  if (first == waiting_.npos) return false;
  const char c = waiting_[first];
  const bool parts = (is_list && ((c == '[' && count_ == 0) || (c == ',' && count_ > 0))) ||
                     (form_ == ToolCallForm::bare && c == ';' && count_ > 0);
  if (parts) return drop(first + 1), true;
  if (is_list && c == ']' && count_ > 0) {
    waiting_.erase(0, first + 1);
    is_within_ = false;
    return true;
  }
  if (c == '{') {
    const std::string_view rest = std::string_view(waiting_).substr(first);
    const size_t length = object_length(rest);
    if (length == 0) return false;
    const auto call = length == rest.npos ? std::nullopt : call_of(rest.substr(0, length), names_);
    if (call) {
      calls_.push_back(*call), ++count_;
      waiting_.erase(0, first + length);
      opened_.clear();
      return true;
    }
  } else if (form_ == ToolCallForm::tagged && opened_.empty() &&
             (waiting_.compare(first, kEndTag.size(), kEndTag) == 0 ||
              kEndTag.starts_with(std::string_view(waiting_).substr(first)))) {
    if (waiting_.size() - first < kEndTag.size()) return false;
    waiting_.erase(0, first + kEndTag.size());
    is_within_ = false;
    return true;
  }
  // No call: all of it is text.
  is_within_ = false;
  has_begun_ = true;
  text_ += opened_;
  opened_.clear();
  pass_text(first + 1);
  return true;
}

}  // namespace heddle
