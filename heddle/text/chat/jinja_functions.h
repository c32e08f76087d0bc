// What templates can ask of values: attributes, methods, filters, tests, functions.
#pragma once

#include <ctime>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heddle/text/chat/jinja_value.h"

namespace heddle {

/// Names of what a function takes, in order; one that is "" has its position alone. "*": any number
/// of others, "**": others of any name.
using JinjaParameters = std::vector<std::string_view>;

/// What a function is called with.
struct JinjaArguments {
  std::vector<JinjaValue> positional = {};
  std::vector<std::pair<std::string, JinjaValue>> named = {};

  /// The i-th positional one, or the one of this name; nullptr if there is neither.
  const JinjaValue* find(size_t i, std::string_view name) const;
  /// The same; `otherwise` where it is absent or None. Errors: data for another type.
  int64_t integer(size_t i, std::string_view name, int64_t otherwise) const;
  bool flag(size_t i, std::string_view name, bool otherwise) const;
  /// The same. Errors: data if it is absent (and there is no `otherwise`), or no text.
  const std::string& text(size_t i, std::string_view name, const char* of,
                          const std::string* otherwise = nullptr) const;
  /// Errors: data, with the function's name, for what is none of these, or given twice.
  void check_fits(std::string_view function, const JinjaParameters& parameters) const;
  /// All but the first `count` positional ones.
  JinjaArguments behind(size_t count) const;
};

/// What one meets walking over a value: elements, keys of a dict, characters of a text; nothing of
/// what is undefined. Errors: data for other values.
std::vector<JinjaValue> jinja_items(const JinjaValue& value, JinjaBudget& budget);
/// How many. Errors: the same.
int64_t jinja_length(const JinjaValue& value, JinjaBudget& budget);
/// value.name: a method, or a member. Errors: data if the value is undefined.
JinjaValue jinja_attribute(const JinjaValue& value, const std::string& name, JinjaBudget& budget);
/// value|attr(name): the same without the members of a dict.
JinjaValue jinja_own_attribute(const JinjaValue& value, const std::string& name,
                               JinjaBudget& budget);
/// value[key]. Errors: data if the value is undefined.
JinjaValue jinja_item(const JinjaValue& value, const JinjaValue& key, JinjaBudget& budget);
/// value[begin:end:step], bounds None where they are absent. Errors: data for other types.
JinjaValue jinja_slice(const JinjaValue& value, const JinjaValue (&bounds)[3], JinjaBudget& budget);
/// Whether `part` is in a value. Errors: data for values that hold nothing.
bool jinja_contains(const JinjaValue& value, const JinjaValue& part, JinjaBudget& budget);

/// Errors: data for arguments that do not fit.
JinjaValue call_jinja_method(const JinjaCallable& method, const JinjaArguments& arguments,
                             JinjaBudget& budget);
/// now: what strftime_now() tells. Errors: data; raise_exception() gives its words.
JinjaValue call_jinja_function(const std::string& name, const JinjaArguments& arguments,
                               std::time_t now, JinjaBudget& budget);
bool is_jinja_function(std::string_view name);
JinjaValue apply_jinja_filter(const std::string& name, const JinjaValue& value,
                              const JinjaArguments& arguments, JinjaBudget& budget);
bool apply_jinja_test(const std::string& name, const JinjaValue& value,
                      const JinjaArguments& arguments, JinjaBudget& budget);

/// Python's "..." % values, with the arguments in order. Errors: data for what does not fit.
std::string jinja_format(const std::string& form, const std::vector<JinjaValue>& values,
                         JinjaBudget& budget);

}  // namespace heddle
