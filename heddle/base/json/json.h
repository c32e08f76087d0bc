// JSON values: parsing with errors that say where, typed access that says what was seen, writing.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace heddle {

/// null, a boolean, an integer, a number, a string, an array or an object (members in the order in
/// which they were added). Integers that int64 cannot hold are read as double.
///
///   const Json config = Json::load("config.json");
///   const int64_t layers = config.get_int("n_layer", "config.json");
///   Json out = Json::object({{"update", 7}, {"loss", 2.31}});
///   out["is_best"] = true;
///   std::string line = out.dump();
class Json {
 public:
  using Array = std::vector<Json>;
  using Member = std::pair<std::string, Json>;

  Json() = default;  ///< null
  Json(std::nullptr_t) {}
  template <std::same_as<bool> T>  // so that no pointer turns into true
  Json(T value) : value_(value) {}
  template <std::integral T>
  requires(!std::same_as<T, bool> && !std::same_as<T, char>) Json(T value)
      : value_(static_cast<int64_t>(value)) {}
  template <std::floating_point T>
  Json(T value) : value_(static_cast<double>(value)) {}
  Json(const char* value) : value_(std::string(value)) {}
  Json(std::string_view value) : value_(std::string(value)) {}
  Json(std::string value) : value_(std::move(value)) {}
  Json(Array value) : value_(std::move(value)) {}
  template <class T>
  Json(const std::vector<T>& values) : value_(Array(values.begin(), values.end())) {}
  template <class T>
  Json(const std::optional<T>& value) : Json(value ? Json(*value) : Json()) {}
  static Json array() { return Json(Array()); }
  static Json object(std::initializer_list<Member> members = {});

  /// Parses a text; `source` (a path) opens every error message.
  /// Errors: data, with line and column, for broken JSON, text that is not UTF-8, NaN or infinity,
  /// a key that appears twice, or more than 200 levels.
  static Json parse(std::string_view text, const std::string& source = "JSON text");
  /// Parses a file. Errors: those of read_file() and parse().
  static Json load(const std::string& path);

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_bool() const { return std::holds_alternative<bool>(value_); }
  bool is_int() const { return std::holds_alternative<int64_t>(value_); }
  bool is_number() const { return is_int() || std::holds_alternative<double>(value_); }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  bool is_array() const { return std::holds_alternative<Array>(value_); }
  bool is_object() const { return std::holds_alternative<Object>(value_); }

  /// The value as a type. `what` opens the error message, as in "config.json: key 'n_layer'".
  /// Errors: data: "WHAT is the string "12"; an integer is needed". A number without a fraction is
  /// an integer too (1e3); an integer is a number.
  bool as_bool(std::string_view what = "value") const;
  int64_t as_int(std::string_view what = "value") const;
  double as_double(std::string_view what = "value") const;
  const std::string& as_string(std::string_view what = "value") const;
  const Array& as_array(std::string_view what = "value") const;
  std::vector<int64_t> as_ints(std::string_view what = "value") const;
  std::vector<std::string> as_strings(std::string_view what = "value") const;
  /// Members in order. Errors: data if this is no object.
  const std::vector<Member>& as_object(std::string_view what = "value") const;

  /// The member of an object, or nullptr where there is none or this is no object.
  const Json* find(std::string_view key) const;
  bool contains(std::string_view key) const { return find(key) != nullptr; }
  /// A member that must be there; `source` (a path) opens the message.
  /// Errors: data if this is no object or lacks the key.
  const Json& at(std::string_view key, std::string_view source = "") const;
  bool get_bool(std::string_view key, std::string_view source = "") const;
  int64_t get_int(std::string_view key, std::string_view source = "") const;
  double get_double(std::string_view key, std::string_view source = "") const;
  const std::string& get_string(std::string_view key, std::string_view source = "") const;

  /// The member, added as null if there is none; null turns into an object first.
  /// Errors: internal if this is another kind of value.
  Json& operator[](std::string_view key);
  /// Removes a member; false if there was none.
  bool erase(std::string_view key);
  /// Adds to an array; null turns into an array first. Errors: internal for another kind of value.
  void push_back(Json value);
  /// Members of an object, elements of an array, else 0.
  size_t size() const;

  /// Writes the value: on one line if `indent` is negative, else with that many spaces a level.
  /// Doubles are written with the fewest digits that read back to the same bits, and keep a ".0".
  /// Bytes that are not UTF-8 are written as U+FFFD. Errors: data for NaN and infinity.
  std::string dump(int indent = -1) const;

  /// What is here, for messages: `the string "12"`, `an array of 3 elements`, `null`.
  std::string describe() const;

  /// Equal kinds and values; the order of members does not count; 1 differs from 1.0.
  bool operator==(const Json& other) const;

 private:
  struct Object {
    std::vector<Member> members;
    std::unordered_map<std::string, size_t> index;  // filled once there are many members
    size_t find(std::string_view key) const;
    Json& add(std::string key, Json value);
    bool operator==(const Object& other) const;
  };
  class Builder;

  std::variant<std::monostate, bool, int64_t, double, std::string, Array, Object> value_;
};

}  // namespace heddle
