// JSON and forms, checked before they are used.
#include "heddle/serve/api/body.h"

#include <algorithm>
#include <optional>

#include "heddle/base/json/fields.h"
#include "heddle/base/utf8.h"

namespace heddle::serve {
namespace {

// Whether brackets outside strings stand in each other deeper than that: looked at before the
// parser builds anything.
bool is_too_deep(std::string_view text, int64_t most_levels) {
  int64_t depth = 0;
  bool is_in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (is_in_string) {
      if (c == '\\') ++i;
      if (c == '"') is_in_string = false;
    } else if (c == '"') {
      is_in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > most_levels) return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

const Json* member(const Json& body, const char* key) {
  const Json* value = body.find(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

std::optional<int> hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return {};
}

}  // namespace

bool is_beyond(size_t bytes, int64_t most_tokens) {
  constexpr auto kBytes = static_cast<size_t>(kMostBytesOfToken);
  return (bytes + kBytes - 1) / kBytes > static_cast<size_t>(std::max<int64_t>(0, most_tokens));
}

void check_bytes(size_t bytes, int64_t most_tokens, const std::string& what) {
  if (!is_beyond(bytes, most_tokens)) return;
  throw Refusal{.message = fmt::format("{} has {} bytes; at most {} tokens are taken", what, bytes,
                                       most_tokens),
                .code = kTooLong};
}

Json number_of_text(const std::string& key, const std::string& value) try {
  const Json number = Json::parse(value);
  if (!number.is_number()) refuse("`{}` is '{}'; it must be a number", key, value);
  return number;
} catch (const Error&) {
  refuse("`{}` is '{}'; it must be a number", key, value);
}

Json bool_of_text(const std::string& key, const std::string& value) {
  if (value != "true" && value != "false") {
    refuse("`{}` is '{}'; it must be true or false", key, value);
  }
  return value == "true";
}

Json json_of_body(std::string_view text, int64_t most_levels) {
  if (is_too_deep(text, most_levels)) refuse("the body has more than {} levels", most_levels);
  try {
    Json body = Json::parse(text, "the body");
    if (!body.is_object()) refuse("the body is {}; a JSON object is needed", body.describe());
    return body;
  } catch (const Error& error) {
    throw Refusal{.message = error.what()};
  }
}

Json json_of_form(std::string_view rest) {
  Json body = Json::object();
  for (int fields = 0; !rest.empty(); ++fields) {
    if (fields > 1024) refuse("the form has more than 1,024 fields");
    const std::string_view field = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), field.size() + 1));
    const size_t equals = std::min(field.find('='), field.size());
    const std::string key = percent_decoded(field.substr(0, equals), true);
    const std::string value =
        equals < field.size() ? percent_decoded(field.substr(equals + 1), true) : std::string();
    if (key.empty()) continue;
    if (first_invalid_utf8(key) || first_invalid_utf8(value)) {
      refuse("field {} of the form is not UTF-8", fields + 1);
    }
    if (key == "alternatives") {
      body[key] = number_of_text(key, value);
    } else if (!body.contains(key)) {
      body[key] = value;
    } else {
      Json& member = body[key];
      if (!member.is_array()) member = Json(Json::Array{std::move(member)});
      member.push_back(value);
    }
  }
  return body;
}

bool has_member(const Json& body, const char* key) { return member(body, key) != nullptr; }

int64_t int_of(const Json& body, const char* key, int64_t otherwise, int64_t low, int64_t high) {
  const Json* value = member(body, key);
  if (value == nullptr) return otherwise;
  if (!value->is_int() || value->as_int() < low || value->as_int() > high) {
    refuse("`{}` is {}; it must be an integer from {} to {}", key, value->describe(), low, high);
  }
  return value->as_int();
}

double number_of(const Json& body, const char* key, double otherwise, double low, double high) {
  const Json* value = member(body, key);
  if (value == nullptr) return otherwise;
  if (!value->is_number() || !(value->as_double() >= low && value->as_double() <= high)) {
    refuse("`{}` is {}; it must be a number from {} to {}", key, value->describe(), low, high);
  }
  return value->as_double();
}

bool bool_of(const Json& body, const char* key, bool otherwise) {
  const Json* value = member(body, key);
  if (value == nullptr) return otherwise;
  if (!value->is_bool()) refuse("`{}` is {}; it must be true or false", key, value->describe());
  return value->as_bool();
}

std::string text_of(const Json& body, const char* key, const std::string& otherwise) {
  const Json* value = member(body, key);
  if (value == nullptr) return otherwise;
  if (!value->is_string()) refuse("`{}` is {}; it must be a string", key, value->describe());
  return value->as_string();
}

std::string choice_of(const Json& body, const char* key, std::initializer_list<const char*> words) {
  const std::string word = text_of(body, key, *words.begin());
  if (std::ranges::find(words, word) != words.end()) return word;
  const std::vector<std::string> all(words.begin(), words.end());
  refuse("`{}` is '{}'; it must be {} or {}", key, word,
         fmt::to_string(fmt::join(all.begin(), all.end() - 1, ", ")), all.back());
}

std::vector<int64_t> ints_of(const Json& body, const char* key) {
  constexpr size_t kMostInts = 4096;
  const Json* value = member(body, key);
  if (value == nullptr) return {};
  const bool are_ints = value->is_array() && value->size() <= kMostInts &&
                        std::ranges::all_of(value->as_array(), &Json::is_int);
  if (!are_ints) refuse("`{}` is {}; it must be an array of integers", key, value->describe());
  return value->as_ints();
}

std::vector<std::string> texts_of(const Json& body, const char* key, int64_t most) {
  const Json* value = member(body, key);
  if (value == nullptr) refuse("`{}` is missing", key);
  if (value->is_string()) return {value->as_string()};
  if (!value->is_array()) {
    refuse("`{}` is {}; it must be a string or an array of strings", key, value->describe());
  }
  const Json::Array& values = value->as_array();
  if (values.empty()) refuse("`{}` has no text", key);
  if (std::ssize(values) > most) refuse("`{}` has {} texts; at most {}", key, values.size(), most);
  std::vector<std::string> texts;
  for (const Json& text : values) {
    if (!text.is_string()) refuse("`{}` holds {}; strings are needed", key, text.describe());
    texts.push_back(text.as_string());
  }
  return texts;
}

void refuse_members(const Json& body, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    const Json* value = body.find(key);
    const bool does_nothing = value == nullptr || value->is_null() || *value == Json(0) ||
                              *value == Json(0.0) || *value == Json::object() ||
                              *value == Json::array() || *value == Json(false) ||
                              *value == Json("");
    if (!does_nothing) refuse("`{}` is not there yet", key);
  }
}

void refuse_others(const Json& body, std::initializer_list<const char*> keys) {
  for (const auto& [key, value] : body.as_object()) {
    if (std::ranges::find(keys, key) != keys.end()) continue;
    refuse("`{}` is no member of this request{}", key,
           did_you_mean(key, {keys.begin(), keys.end()}));
  }
}

std::string percent_decoded(std::string_view text, bool plus_is_space) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && hex_digit(text[i + 1]) && hex_digit(text[i + 2])) {
      out += static_cast<char>(*hex_digit(text[i + 1]) * 16 + *hex_digit(text[i + 2]));
      i += 2;
    } else {
      out += plus_is_space && text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

}  // namespace heddle::serve
