// Reading, writing, setting and comparing the fields of config structs.
#include "heddle/base/json/fields.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <ranges>

#include "heddle/base/error.h"
#include "heddle/base/names.h"

namespace heddle {

namespace {

// --- values to and from JSON ---

template <class T>
void read_json(T& value, const Json& json, const std::string& what) {
  if constexpr (std::same_as<T, int64_t>) value = json.as_int(what);
  if constexpr (std::same_as<T, double>) value = json.as_double(what);
  if constexpr (std::same_as<T, bool>) value = json.as_bool(what);
  if constexpr (std::same_as<T, std::string>) value = json.as_string(what);
}
void read_json(Json& value, const Json& json, const std::string&) { value = json; }
template <class T>
void read_json(std::optional<T>& value, const Json& json, const std::string& what) {
  value.reset();
  if (!json.is_null()) read_json(value.emplace(), json, what);
}
template <class T>
void read_json(std::vector<T>& values, const Json& json, const std::string& what) {
  values.clear();
  for (const Json& element : json.as_array(what)) {
    const std::string name = fmt::format("{}[{}]", what, values.size());
    read_json(values.emplace_back(), element, name);
  }
}

// --- values from the text of a flag: what is wanted, or "" if all went well ---

template <class T>
bool read_number(T& value, std::string_view text) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end;
}

std::string read_text(int64_t& value, std::string_view text) {
  return read_number(value, text) ? "" : "an integer of 64 bits";
}
std::string read_text(double& value, std::string_view text) {
  return read_number(value, text) && std::isfinite(value) ? "" : "a number";
}
std::string read_text(bool& value, std::string_view text) {
  const bool is_true = text == "true" || text == "yes" || text == "on" || text == "1";
  const bool is_false = text == "false" || text == "no" || text == "off" || text == "0";
  value = is_true;
  return is_true || is_false ? "" : "true or false";
}
std::string read_text(std::string& value, std::string_view text) {
  value = text;
  return "";
}
std::string read_text(Json& value, std::string_view text) {
  try {
    value = text == "none" ? Json() : Json::parse(text);
  } catch (const Error&) {
    return "JSON";
  }
  return "";
}
template <class T>
std::string read_text(std::optional<T>& value, std::string_view text) {
  value.reset();
  if (text == "none" || text == "null") return "";
  const std::string wanted = read_text(value.emplace(), text);
  return wanted.empty() ? "" : wanted + " or none";
}
template <class T>
std::string read_text(std::vector<T>& values, std::string_view text) {
  values.clear();
  for (const auto part : std::views::split(text, ',')) {
    const std::string wanted =
        read_text(values.emplace_back(), std::string_view(part.begin(), part.end()));
    if (!wanted.empty()) return "a list as in 1,2,3, each " + wanted;
  }
  return "";
}

// --- names, rules, messages ---

std::string type_name(const int64_t*) { return "integer"; }
std::string type_name(const double*) { return "number"; }
std::string type_name(const bool*) { return "true|false"; }
std::string type_name(const std::string*) { return "text"; }
std::string type_name(const Json*) { return "JSON"; }
template <class T>
std::string type_name(const std::optional<T>*) {
  return type_name(static_cast<T*>(nullptr)) + "|none";
}
template <class T>
std::string type_name(const std::vector<T>*) {
  return "list of " + type_name(static_cast<T*>(nullptr)) + "s";
}

std::string as_flag(const Json& value) {
  if (value.is_null()) return "none";
  if (value.is_string()) return value.as_string();
  if (!value.is_array()) return value.dump();
  std::string text;
  for (const Json& element : value.as_array()) text += (text.empty() ? "" : ",") + as_flag(element);
  return text;
}

Json value_of(const Field& field) {
  return std::visit([](const auto* member) { return Json(*member); }, field.member);
}

/// What the rule asks of a value that breaks it, or "".
std::string broken_rule(const Json& value, const FieldRule& rule) {
  if (value.is_array()) {
    for (const Json& element : value.as_array()) {
      const std::string broken = broken_rule(element, rule);
      if (!broken.empty()) return "each " + broken;
    }
  }
  if (value.is_string() && !rule.words.empty()) {
    if (std::ranges::count(rule.words, value.as_string()) > 0) return "";
    return fmt::format("must be one of {}{}", fmt::join(rule.words, ", "),
                       did_you_mean(value.as_string(), rule.words));
  }
  if (!value.is_number()) return "";
  const double x = value.as_double();
  if (!std::isfinite(x)) return "must be a finite number";
  const bool is_low_met = rule.is_low_open ? x > rule.low : x >= rule.low;
  const bool is_high_met = rule.is_high_open ? x < rule.high : x <= rule.high;
  if (is_low_met && is_high_met) return "";
  const std::string low = fmt::format("{} {}", rule.is_low_open ? "above" : "at least", rule.low);
  const std::string high = fmt::format("{} {}", rule.is_high_open ? "below" : "at most", rule.high);
  if (std::isinf(rule.high)) return "must be " + low;
  if (std::isinf(rule.low)) return "must be " + high;
  return fmt::format("must be {} and {}", low, high);
}

constexpr const char* kAbsent = "(no such field)";

/// nullptr where there is none of that key.
const Field* find_field(const FieldList& fields, std::string_view key) {
  const auto found = std::ranges::find(fields, key, &Field::key);
  return found == fields.end() ? nullptr : &*found;
}

}  // namespace

std::vector<std::string> from_json(const FieldList& fields, const Json& json,
                                   const std::string& source) {
  std::vector<std::string> unknown;
  for (const auto& [key, value] : json.as_object(source)) {
    const Field* field = find_field(fields, key);
    if (field == nullptr) {
      unknown.push_back(key);
      continue;
    }
    const std::string what = fmt::format("{}: key '{}'", source, key);
    std::visit([&, &v = value](auto* member) { read_json(*member, v, what); }, field->member);
  }
  check_fields(fields, source);
  return unknown;
}

Json to_json(const FieldList& fields) {
  Json json = Json::object();
  for (const Field& field : fields) json[field.key] = value_of(field);
  return json;
}

void set_from_string(const FieldList& fields, std::string_view key, std::string_view text) {
  const std::string wanted_key = field_key(key);
  // A field is named as it was: by its flag, or by itself.
  const auto shown = [&](const std::string& name) {
    return key.starts_with("--") ? flag_name(name) : name;
  };
  if (const Field* field = find_field(fields, wanted_key)) {
    const std::string wanted =
        std::visit([&](auto* member) { return read_text(*member, text); }, field->member);
    check(wanted.empty(), ErrorKind::usage, "{} is '{}'; {} is needed", shown(field->key), text,
          wanted);
    const std::string broken = broken_rule(*field);
    check(broken.empty(), ErrorKind::usage, "{} is {}; it {}", shown(field->key), text, broken);
    return;
  }
  std::vector<std::string> names;
  for (const Field& field : fields) names.push_back(shown(field.key));
  const std::string nearest = did_you_mean(shown(wanted_key), names);
  fail(ErrorKind::usage, "unknown field {}{}", shown(wanted_key),
       nearest.empty() ? fmt::format("; there are {}", fmt::join(names, ", ")) : nearest);
}

std::vector<FieldInfo> list_fields(const FieldList& fields) {
  std::vector<FieldInfo> infos;
  for (const Field& field : fields) {
    std::string type = std::visit([](auto* member) { return type_name(member); }, field.member);
    if (!field.rule.words.empty()) type = fmt::format("{}", fmt::join(field.rule.words, "|"));
    infos.push_back({field.key, type, as_flag(value_of(field)), name_fields(field.help)});
  }
  return infos;
}

std::vector<FieldDifference> diff_fields(const FieldList& first, const FieldList& second) {
  std::vector<FieldDifference> differences;
  for (const Field& a : first) {
    const Field* b = find_field(second, a.key);
    if (b != nullptr && value_of(a) == value_of(*b)) continue;
    differences.push_back({a.key, as_flag(value_of(a)), b ? as_flag(value_of(*b)) : kAbsent});
  }
  for (const Field& b : second) {
    if (!find_field(first, b.key)) differences.push_back({b.key, kAbsent, as_flag(value_of(b))});
  }
  return differences;
}

std::string broken_rule(const Field& field) { return broken_rule(value_of(field), field.rule); }

void check_fields(const FieldList& fields, const std::string& source) {
  for (const Field& field : fields) {
    const std::string broken = broken_rule(field);
    check(broken.empty(), ErrorKind::data, "{}: key '{}' is {}; it {}", source, field.key,
          value_of(field).describe(), broken);
  }
}

void lay_over(const FieldList& to, const FieldList& from) {
  for (size_t i = 0; i < to.size(); ++i) {
    std::visit(
        [&]<class T>(T* value) {
          const T& above = *std::get<T*>(from[i].member);
          bool is_there = true;
          if constexpr (requires { above.has_value(); }) is_there = above.has_value();
          if constexpr (requires { above.empty(); }) is_there = !above.empty();
          if (is_there) *value = above;
        },
        to[i].member);
  }
}

std::string field_key(std::string_view flag) {
  if (flag.starts_with("--")) flag.remove_prefix(2);
  std::string key(flag);
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

std::string flag_name(std::string_view key) {
  std::string flag(key);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return "--" + flag;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates) {
  const std::string nearest = nearest_name(name, candidates);
  return nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest);
}

}  // namespace heddle
