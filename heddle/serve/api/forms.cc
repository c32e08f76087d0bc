// Forms as JSON.
#include "heddle/serve/api/forms.h"

#include <optional>

namespace heddle::serve {
namespace {

std::optional<int> hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return {};
}

std::string decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+') {
      out += ' ';
      continue;
    }
    if (text[i] == '%' && i + 2 < text.size() && hex_digit(text[i + 1]) && hex_digit(text[i + 2])) {
      out += static_cast<char>(*hex_digit(text[i + 1]) * 16 + *hex_digit(text[i + 2]));
      i += 2;
      continue;
    }
    out += text[i];
  }
  return out;
}

// Members that are numbers in JSON.
bool is_number_key(std::string_view key) { return key == "alternatives" || key == "threshold"; }

Json number_of_text(const std::string& key, const std::string& value) try {
  const Json number = Json::parse(value);
  if (!number.is_number()) refuse("`{}` is '{}'; it must be a number", key, value);
  return number;
} catch (const Error&) {
  refuse("`{}` is '{}'; it must be a number", key, value);
}

Json form_json(std::string_view rest) {
  Json body = Json::object();
  for (int fields = 0; !rest.empty(); ++fields) {
    if (fields > 1024) refuse("the form has more than 1,024 fields");
    const std::string_view field = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), field.size() + 1));
    const size_t equals = std::min(field.find('='), field.size());
    const std::string key = decoded(field.substr(0, equals));
    const std::string value =
        equals < field.size() ? decoded(field.substr(equals + 1)) : std::string();
    if (key.empty()) continue;
    if (is_number_key(key)) {
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

}  // namespace

Json body_of(const Exchange& e) {
  const std::string* type = e.request.header("content-type");
  if (type == nullptr || !type->starts_with("application/x-www-form-urlencoded")) return e.json();
  return form_json(e.request.body);
}

Json query_of(const Exchange& e) { return form_json(e.request.query); }

}  // namespace heddle::serve
