// What of JSON Schema (2020-12) the description of the interface uses.
#pragma once

#include <algorithm>
#include <string>

#include "heddle/base/json/json.h"
#include "heddle/base/utf8.h"

namespace heddle::testing {

class SchemaCheck {
 public:
  /// document: that "$ref" points into
  explicit SchemaCheck(const Json& document) : document_(document) {}

  /// "" if the value is as the schema says; else where it is not, and why. Errors: data for a
  /// keyword that is not known.
  std::string fault(const Json& schema, const Json& value, const std::string& at = "$") const {
    if (schema == Json(true)) return "";
    for (const auto& [keyword, rule] : schema.as_object()) {
      const std::string found = fault_of(keyword, rule, schema, value, at);
      if (!found.empty()) return found;
    }
    return "";
  }
  /// What "#/components/schemas/NAME" points to. Errors: data if there is no such thing.
  const Json& target(const std::string& reference) const {
    const Json* at = &document_;
    for (size_t begin = 2; begin <= reference.size();) {
      const size_t end = std::min(reference.find('/', begin), reference.size());
      at = &at->at(reference.substr(begin, end - begin), reference);
      begin = end + 1;
    }
    return *at;
  }

 private:
  std::string fault_of(const std::string& keyword, const Json& rule, const Json& schema,
                       const Json& value, const std::string& at) const {
    if (keyword == "description" || keyword == "default" || keyword == "$defs") return "";
    if (keyword == "$ref") return fault(target(rule.as_string()), value, at);
    if (keyword == "type") return is_of_types(rule, value) ? "" : at + " is " + value.describe();
    if (keyword == "const") return value == rule ? "" : at + " is not " + rule.dump();
    if (keyword == "enum") {
      return std::ranges::find(rule.as_array(), value) != rule.as_array().end()
                 ? ""
                 : at + " is " + value.describe();
    }
    if (keyword == "minimum" || keyword == "maximum") {
      const bool is_least = keyword == "minimum";
      const bool holds = !value.is_number() || (is_least ? value.as_double() >= rule.as_double()
                                                         : value.as_double() <= rule.as_double());
      return holds ? "" : at + " is " + value.dump();
    }
    if (keyword == "minItems") {
      const bool holds = !value.is_array() || std::ssize(value.as_array()) >= rule.as_int();
      return holds ? "" : at + " has too few elements";
    }
    if (keyword == "maxItems") {
      const bool holds = !value.is_array() || std::ssize(value.as_array()) <= rule.as_int();
      return holds ? "" : at + " has too many elements";
    }
    if (keyword == "minLength" || keyword == "maxLength") {
      const int64_t length = value.is_string() ? count_characters(value.as_string()) : -1;
      const bool is_least = keyword == "minLength";
      const bool holds =
          length < 0 || (is_least ? length >= rule.as_int() : length <= rule.as_int());
      return holds ? "" : at + " has " + std::to_string(length) + " characters";
    }
    if (keyword == "oneOf" || keyword == "anyOf") return of_several(keyword, rule, value, at);
    if (keyword == "items") return of_items(rule, value, at);
    if (keyword == "required") {
      for (const Json& key : rule.as_array()) {
        if (value.is_object() && !value.contains(key.as_string())) {
          return at + " lacks " + key.as_string();
        }
      }
      return "";
    }
    if (keyword == "properties" || keyword == "additionalProperties") {
      return keyword == "properties" ? of_members(rule, value, at)
                                     : of_others(rule, schema, value, at);
    }
    throw Error(ErrorKind::data, "the schema's keyword " + keyword + " is not known");
  }

  static bool is_of_type(const std::string& type, const Json& value) {
    if (type == "null") return value.is_null();
    if (type == "boolean") return value.is_bool();
    if (type == "integer") return value.is_int();
    if (type == "number") return value.is_number();
    if (type == "string") return value.is_string();
    if (type == "array") return value.is_array();
    return type == "object" && value.is_object();
  }
  static bool is_of_types(const Json& types, const Json& value) {
    if (types.is_string()) return is_of_type(types.as_string(), value);
    return std::ranges::any_of(types.as_array(),
                               [&](const Json& t) { return is_of_type(t.as_string(), value); });
  }
  std::string of_several(const std::string& keyword, const Json& rule, const Json& value,
                         const std::string& at) const {
    std::string why;
    int holding = 0;
    for (const Json& one : rule.as_array()) {
      const std::string found = fault(one, value, at);
      holding += found.empty() ? 1 : 0;
      why += found + "; ";
    }
    return holding == 1 || (holding > 1 && keyword == "anyOf") ? "" : at + ": none of " + why;
  }
  std::string of_items(const Json& rule, const Json& value, const std::string& at) const {
    if (!value.is_array()) return "";
    for (size_t i = 0; i < value.size(); ++i) {
      const std::string found =
          fault(rule, value.as_array()[i], at + "[" + std::to_string(i) + "]");
      if (!found.empty()) return found;
    }
    return "";
  }
  std::string of_members(const Json& rule, const Json& value, const std::string& at) const {
    for (const auto& [key, schema] : rule.as_object()) {
      const Json* member = value.find(key);
      const std::string found = member == nullptr ? "" : fault(schema, *member, at + "." + key);
      if (!found.empty()) return found;
    }
    return "";
  }
  std::string of_others(const Json& rule, const Json& schema, const Json& value,
                        const std::string& at) const {
    if (!value.is_object()) return "";
    const Json* known = schema.find("properties");
    for (const auto& [key, member] : value.as_object()) {
      if (known != nullptr && known->contains(key)) continue;
      if (rule.is_bool()) {
        if (!rule.as_bool()) return at + " has " + key + ", which is not described";
        continue;
      }
      const std::string found = fault(rule, member, at + "." + key);
      if (!found.empty()) return found;
    }
    return "";
  }

  const Json& document_;
};

}  // namespace heddle::testing
