// One description of a config struct, many uses: JSON, flags, help, comparison.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "heddle/base/json/json.h"

namespace heddle {

/// What a field's value must satisfy: words for a string, bounds for numbers (each one of a list).
struct FieldRule {
  std::vector<std::string> words = {};  ///< allowed values; empty allows all
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool is_low_open = false;   ///< the value must be above low, not equal
  bool is_high_open = false;  ///< the value must be below high, not equal
};

inline FieldRule one_of(std::vector<std::string> words) { return {.words = std::move(words)}; }
inline FieldRule at_least(double low) { return {.low = low}; }
inline FieldRule above(double low) { return {.low = low, .is_low_open = true}; }
inline FieldRule between(double low, double high) { return {.low = low, .high = high}; }
/// low <= value < high: what a dropout rate must be, with 0 and 1.
inline FieldRule from_below(double low, double high) {
  return {.low = low, .high = high, .is_high_open = true};
}

/// A pointer to a member of a config. An empty optional is null in JSON and "none" in a flag; a
/// flag gives a Json as its text.
using FieldMember =
    std::variant<int64_t*, double*, bool*, std::string*, std::optional<int64_t>*,
                 std::optional<double>*, std::vector<int64_t>*, std::vector<double>*,
                 std::vector<std::string>*, std::vector<std::vector<int64_t>>*, Json*>;

struct Field {
  std::string key;  ///< the Hugging Face name: "n_layer"
  FieldMember member;
  std::string help;
  FieldRule rule;
};

/// The fields of a config, pointing into it, and the visitor that its `fields` receives; any config
/// that lists them is taken for them. A const config must not be written through them.
///
///   struct Gpt2Config {
///     int64_t layers = 12;
///     double dropout = 0.1;
///     std::string activation = "gelu";
///     OptimizerConfig optimizer;
///     template <class V> void fields(V& v) {
///       v("n_layer", layers, "number of blocks", at_least(1));
///       v("resid_pdrop", dropout, "dropout of each residual branch", from_below(0, 1));
///       v("activation_function", activation, "of the MLP", one_of({"relu", "gelu"}));
///       optimizer.fields(v);
///     }
///   };
struct FieldList : std::vector<Field> {
  FieldList(std::vector<Field> fields) : std::vector<Field>(std::move(fields)) {}
  template <class Config>
  requires requires(Config& config, FieldList& v) { config.fields(v); }
  FieldList(const Config& config) { const_cast<Config&>(config).fields(*this); }

  template <class T>
  void operator()(const char* key, T& member, const char* help, FieldRule rule = {}) {
    push_back({key, &member, help, std::move(rule)});
  }
};

/// A field as shown in help and reference pages.
struct FieldInfo {
  std::string key;   ///< "n_layer"
  std::string type;  ///< "integer", "number", "true|false", "relu|gelu", "list of integers"
  std::string default_value;  ///< as a flag would give it
  std::string help;
};

/// A field in which two configs differ.
struct FieldDifference {
  std::string key, first, second;  ///< values as a flag would give them
};

/// What the rule asks of a value that breaks it, "must be at least 1", or "".
std::string broken_rule(const Field& field);

/// Reads the members named in `json`; the others keep their values. Returns the keys of `json` that
/// the config does not know, for the caller to judge.
/// Errors: data, naming `source`, key, value and what is wanted, for a wrong type or a value that
/// breaks its rule; the config may then be half read.
[[nodiscard]] std::vector<std::string> from_json(const FieldList& config, const Json& json,
                                                 const std::string& source);

/// All fields as an object, in the order of their description.
Json to_json(const FieldList& config);

/// Sets one field from a flag's text. "--d-model", "d-model" and "d_model" name the same field; a
/// list is "1,2,3"; an empty optional is "none".
/// Errors: usage for an unknown key (the nearest name is proposed) or an unsuitable text.
void set_from_string(const FieldList& config, std::string_view key, std::string_view text);

std::vector<FieldInfo> list_fields(const FieldList& config);

/// The fields in which two configs of a type differ, in order; empty if they are equal.
std::vector<FieldDifference> diff_fields(const FieldList& first, const FieldList& second);

/// Checks each field's rule. Errors: data, naming source, key, value and the rule.
void check_fields(const FieldList& config, const std::string& source);

/// Takes over the fields that `above`, a config of the same type, has: optionals that hold a value,
/// texts and lists that are not empty, any number or truth.
void lay_over(const FieldList& config, const FieldList& above);

/// "d-model", "--d-model" and "d_model" all give "d_model".
std::string field_key(std::string_view flag);
/// "d_model" gives "--d-model".
std::string flag_name(std::string_view key);

/// "; did you mean 'NAME'?" for the nearest of the candidates, or "".
std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace heddle
