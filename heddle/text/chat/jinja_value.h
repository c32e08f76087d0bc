// Values of chat templates, as Python has them: what they print, compare and hold.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "heddle/base/json/json.h"

namespace heddle {

struct JinjaNode;
struct JinjaSequence;
struct JinjaDict;
struct JinjaNamespace;
struct JinjaCallable;

/// What a rendering may still take: steps of evaluation, with bytes and elements that are made or
/// looked at among them. Errors: data once it is used up.
class JinjaBudget {
 public:
  explicit JinjaBudget(int64_t steps) : left_(steps) {}
  void spend(int64_t steps = 1) {
    if ((left_ -= steps) < 0) run_out();
  }
  void spend_bytes(size_t bytes) { spend(1 + static_cast<int64_t>(bytes / 16)); }

 private:
  [[noreturn]] static void run_out();
  int64_t left_;
};

/// A name that has no value; using it as one raises, asking whether it is there does not.
struct JinjaUndefined {
  std::string name = {};
};

class JinjaValue {
 public:
  using String = std::shared_ptr<const std::string>;
  using Sequence = std::shared_ptr<const JinjaSequence>;
  using Dict = std::shared_ptr<const JinjaDict>;
  using Namespace = std::shared_ptr<JinjaNamespace>;
  using Callable = std::shared_ptr<const JinjaCallable>;

  JinjaValue() = default;  ///< None
  JinjaValue(JinjaUndefined value) : value_(std::move(value)) {}
  JinjaValue(std::same_as<bool> auto value) : value_(value) {}
  JinjaValue(int64_t value) : value_(value) {}
  JinjaValue(double value) : value_(value) {}
  JinjaValue(std::string text) : value_(std::make_shared<const std::string>(std::move(text))) {}
  JinjaValue(const char* text) : JinjaValue(std::string(text)) {}
  JinjaValue(Namespace value) : value_(std::move(value)) {}
  JinjaValue(JinjaCallable value);
  /// Errors: data for more than kDeepest levels.
  static JinjaValue list(std::vector<JinjaValue> items, bool is_tuple = false);
  static JinjaValue dict(std::vector<std::pair<JinjaValue, JinjaValue>> members);
  static JinjaValue of_json(const Json& json);
  static constexpr int kDeepest = 100;

  bool is_none() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_undefined() const { return std::holds_alternative<JinjaUndefined>(value_); }
  bool is_bool() const { return std::holds_alternative<bool>(value_); }
  bool is_int() const { return std::holds_alternative<int64_t>(value_); }
  bool is_float() const { return std::holds_alternative<double>(value_); }
  bool is_number() const { return is_bool() || is_int() || is_float(); }
  bool is_string() const { return std::holds_alternative<String>(value_); }
  bool is_sequence() const { return std::holds_alternative<Sequence>(value_); }
  bool is_dict() const { return std::holds_alternative<Dict>(value_); }
  bool is_namespace() const { return std::holds_alternative<Namespace>(value_); }
  bool is_callable() const { return std::holds_alternative<Callable>(value_); }

  const std::string& string() const { return *std::get<String>(value_); }
  const JinjaSequence& sequence() const { return *std::get<Sequence>(value_); }
  const JinjaDict& dict() const { return *std::get<Dict>(value_); }
  JinjaNamespace& name_space() const { return *std::get<Namespace>(value_); }
  const JinjaCallable& callable() const { return *std::get<Callable>(value_); }
  /// Of what is undefined; else "".
  std::string undefined_name() const {
    return is_undefined() ? std::get<JinjaUndefined>(value_).name : "";
  }
  /// Of a boolean or an integer. Errors: data, naming `what`, for another value.
  int64_t integer(std::string_view what) const;
  /// Of any number. Errors: the same.
  double number(std::string_view what) const;

  /// "str", "int", "dict", ..: what Python calls its type.
  const char* type() const;
  bool is_true() const;
  /// Levels of lists and dicts; 0 of others.
  int depth() const;
  /// Whether a namespace is in it.
  bool holds_namespace() const;
  /// Members of a dict by key; nullptr where there is none.
  const JinjaValue* find(const JinjaValue& key, JinjaBudget& budget) const;

 private:
  std::variant<std::monostate, JinjaUndefined, bool, int64_t, double, String, Sequence, Dict,
               Namespace, Callable>
      value_;
};

struct JinjaSequence {
  std::vector<JinjaValue> items = {};
  bool is_tuple = false;
  int depth = 1;  ///< levels of lists and dicts, its own with them
  bool holds_namespace = false;
};

struct JinjaDict {
  std::vector<std::pair<JinjaValue, JinjaValue>> members = {};  ///< in the order they came
  int depth = 1;
  bool holds_namespace = false;
};

/// What namespace() gives: the one value that changes. It holds no other namespace.
struct JinjaNamespace {
  std::vector<std::pair<std::string, JinjaValue>> members = {};
};

/// A macro, a function of the language, or a method with the value that it is of.
struct JinjaCallable {
  std::string name;
  std::shared_ptr<const JinjaValue> self = {};
  const JinjaNode* macro = nullptr;
  int64_t scope = 0;  ///< of a macro: the number of the one that it stands in
};

/// json.dumps' own arguments, without its defaults.
struct JinjaJsonForm {
  bool is_ascii = false;
  std::optional<std::string> indent = {};  ///< of a level; one line without it
  std::string between_items = ", ", behind_keys = ": ";
  bool sorts_keys = false;
};

/// str(value): what is printed. Errors: data if the budget ends.
std::string jinja_text(const JinjaValue& value, JinjaBudget& budget);
/// json.dumps(value, ..). Errors: data for what JSON has not, and for keys without an order that
/// are to be sorted.
std::string jinja_json(const JinjaValue& value, const JinjaJsonForm& form, JinjaBudget& budget);
bool jinja_equal(const JinjaValue& a, const JinjaValue& b, JinjaBudget& budget);
/// Whether a < b. Errors: data for values that have no order.
bool jinja_less(const JinjaValue& a, const JinjaValue& b, JinjaBudget& budget);

}  // namespace heddle
