// Schemas become rules, keyword by keyword.
#include "heddle/infer/search/json_grammar.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "heddle/base/error.h"
#include "heddle/base/utf8.h"

namespace heddle {
namespace {

using Kind = JsonRule::Kind;

constexpr int kDeepest = 32;           // levels of objects and arrays
constexpr int32_t kNever = -1;         // no text
constexpr size_t kMostRules = 65'536;  // of a grammar

const std::set<std::string, std::less<>> kAnnotations = {
    "title",      "description", "default",   "examples", "$schema",     "$id",   "$comment",
    "deprecated", "readOnly",    "writeOnly", "$defs",    "definitions", "strict"};

class GrammarBuilder {
 public:
  explicit GrammarBuilder(const Json& schema) : root_(schema) {}

  JsonGrammar build() {
    const Json any_object = Json::object({{"type", "object"}});
    const int32_t value = of_schema(root_.is_null() ? any_object : root_, "the schema", kDeepest);
    check(value != kNever, ErrorKind::usage, "no JSON text of at most {} levels fits the schema",
          kDeepest);
    grammar_.start = sequence({optional(literal(" ")), value});
    grammar_.rules.shrink_to_fit(), grammar_.texts.shrink_to_fit();
    grammar_.all_parts.shrink_to_fit(), grammar_.sets.shrink_to_fit();
    return std::move(grammar_);
  }

 private:
  // --- rules -------------------------------------------------------------------------------------

  int32_t add(const JsonRule& rule) {
    check(grammar_.rules.size() < kMostRules, ErrorKind::usage,
          "the schema is too large: it comes to more than {} rules, some six a property",
          kMostRules);
    grammar_.rules.push_back(rule);
    return static_cast<int32_t>(grammar_.rules.size() - 1);
  }
  int32_t add(JsonRule rule, std::span<const int32_t> parts) {
    rule.first = static_cast<uint32_t>(grammar_.all_parts.size());
    rule.count = static_cast<uint32_t>(parts.size());
    grammar_.all_parts.insert(grammar_.all_parts.end(), parts.begin(), parts.end());
    return add(rule);
  }
  int64_t bytes_of(int32_t rule) const { return grammar_.rules[static_cast<size_t>(rule)].bytes; }

  int32_t literal(std::string_view text) {
    const JsonRule rule{.kind = Kind::literal,
                        .first = static_cast<uint32_t>(grammar_.texts.size()),
                        .count = static_cast<uint32_t>(text.size()),
                        .bytes = std::ssize(text)};
    grammar_.texts += text;
    return add(rule);
  }
  int32_t bytes(std::initializer_list<std::pair<int, int>> ranges) {
    std::array<uint64_t, 4> set = {};
    for (const auto& [first, last] : ranges) {
      for (int b = first; b <= last; ++b) {
        set[static_cast<size_t>(b) / 64] |= uint64_t{1} << (b % 64);
      }
    }
    grammar_.sets.push_back(set);
    const auto number = static_cast<uint32_t>(grammar_.sets.size() - 1);
    return add({.kind = Kind::bytes, .first = number, .bytes = 1});
  }
  int32_t sequence(const std::vector<int32_t>& parts) {
    JsonRule rule{.kind = Kind::sequence};
    bool opens = false;
    for (const int32_t part : parts) {
      if (part == kNever) return kNever;
      const JsonRule& r = grammar_.rules[static_cast<size_t>(part)];
      opens = opens || r.kind == Kind::open_keys;
      rule.has_key = !opens && (rule.has_key || r.has_key);
      rule.bytes = std::min(rule.bytes + bytes_of(part), kUnbounded);
    }
    return add(rule, parts);
  }
  int32_t choice(std::vector<int32_t> parts) {
    std::erase(parts, kNever);
    if (parts.empty()) return kNever;
    if (parts.size() == 1) return parts[0];
    JsonRule rule{.kind = Kind::choice, .bytes = std::numeric_limits<int64_t>::max()};
    for (const int32_t part : parts) rule.bytes = std::min(rule.bytes, bytes_of(part));
    return add(rule, parts);
  }
  int32_t repeat(int32_t part, int64_t least, int64_t most) {
    if (part == kNever) return least == 0 ? sequence({}) : kNever;
    const int64_t each = std::max<int64_t>(1, bytes_of(part));
    return add({.kind = Kind::repeat,
                .least = least,
                .most = most,
                .bytes = least > kUnbounded / each ? kUnbounded : least * bytes_of(part)},
               std::span(&part, 1));
  }
  int32_t optional(int32_t part) { return choice({sequence({}), part}); }
  int32_t mark(Kind kind) {
    const bool is_key = kind == Kind::free_key;
    return add({.kind = kind, .has_key = is_key, .bytes = is_key ? 1 : 0});
  }

  // The same rule wherever it is asked for.
  template <class Make>
  int32_t once(const std::string& name, const Make& make) {
    const auto known = named_.find(name);
    if (known != named_.end()) return known->second;
    const int32_t made = make();
    named_[name] = made;
    return made;
  }

  int32_t comma() {
    return once(",", [&] { return sequence({literal(","), optional(literal(" "))}); });
  }
  int32_t colon() {
    return once(":", [&] { return sequence({literal(":"), optional(literal(" "))}); });
  }

  // --- scalars -----------------------------------------------------------------------------------

  // A character of a string: UTF-8 as table 3-7 of the Unicode Standard has it, or an escape that
  // is no half of a pair.
  int32_t character() {
    return once("character", [&] {
      grammar_.character_begin = static_cast<int32_t>(grammar_.rules.size());
      const int32_t tail = bytes({{0x80, 0xBF}});
      const int32_t hex = bytes({{'0', '9'}, {'a', 'f'}, {'A', 'F'}});
      const int32_t unit =
          choice({sequence({bytes({{'0', '9'}, {'a', 'c'}, {'e', 'f'}, {'A', 'C'}, {'E', 'F'}}),
                            hex, hex, hex}),
                  sequence({bytes({{'d', 'd'}, {'D', 'D'}}), bytes({{'0', '7'}}), hex, hex})});
      const int32_t made =
          choice({bytes({{0x20, 0x21}, {0x23, 0x5B}, {0x5D, 0x7E}}),
                  sequence({bytes({{0xC2, 0xDF}}), tail}),
                  sequence({bytes({{0xE0, 0xE0}}), bytes({{0xA0, 0xBF}}), tail}),
                  sequence({bytes({{0xE1, 0xEC}, {0xEE, 0xEF}}), tail, tail}),
                  sequence({bytes({{0xED, 0xED}}), bytes({{0x80, 0x9F}}), tail}),
                  sequence({bytes({{0xF0, 0xF0}}), bytes({{0x90, 0xBF}}), tail, tail}),
                  sequence({bytes({{0xF1, 0xF3}}), tail, tail, tail}),
                  sequence({bytes({{0xF4, 0xF4}}), bytes({{0x80, 0x8F}}), tail, tail}),
                  sequence({literal("\\"), choice({bytes({{'"', '"'},
                                                          {'\\', '\\'},
                                                          {'/', '/'},
                                                          {'b', 'b'},
                                                          {'f', 'f'},
                                                          {'n', 'n'},
                                                          {'r', 'r'},
                                                          {'t', 't'}}),
                                                   sequence({literal("u"), unit})})})});
      grammar_.character_end = static_cast<int32_t>(grammar_.rules.size());
      return made;
    });
  }
  int32_t string(int64_t least, int64_t most) {
    if (least > most) return kNever;
    return once(fmt::format("string {} {}", least, most), [&] {
      return sequence({literal("\""), repeat(character(), least, most), literal("\"")});
    });
  }
  int32_t integer() {
    return once("integer", [&] {
      const int32_t digits = repeat(bytes({{'0', '9'}}), 0, 14);
      return choice(
          {literal("0"), sequence({optional(literal("-")), bytes({{'1', '9'}}), digits})});
    });
  }
  int32_t number() {
    return once("number", [&] {
      const int32_t digit = bytes({{'0', '9'}});
      const int32_t whole =
          choice({literal("0"), sequence({bytes({{'1', '9'}}), repeat(digit, 0, 14)})});
      const int32_t fraction = sequence({literal("."), repeat(digit, 1, 15)});
      const int32_t exponent =
          sequence({bytes({{'e', 'e'}, {'E', 'E'}}), optional(bytes({{'+', '+'}, {'-', '-'}})),
                    repeat(digit, 1, 2)});
      return sequence({optional(literal("-")), whole, optional(fraction), optional(exponent)});
    });
  }

  // --- values of any kind ------------------------------------------------------------------------

  int32_t any_value(int depth) {
    return once(fmt::format("any {}", depth), [&] {
      return choice({string(0, kUnbounded), number(), literal("true"), literal("false"),
                     literal("null"), depth == 0 ? kNever : free_object(any_value(depth - 1)),
                     depth == 0 ? kNever : array(any_value(depth - 1), 0, kUnbounded)});
    });
  }
  // Members of any name.
  int32_t free_object(int32_t value) {
    const int32_t member = sequence({literal("\""), mark(Kind::free_key), colon(), value});
    const int32_t members = sequence({member, repeat(sequence({comma(), member}), 0, kUnbounded)});
    return sequence({literal("{"), mark(Kind::open_keys), optional(members), mark(Kind::close_keys),
                     literal("}")});
  }
  int32_t array(int32_t item, int64_t least, int64_t most) {
    const int32_t nothing = least == 0 ? literal("[]") : kNever;
    if (most == 0) return nothing;
    const int64_t most_more = most == kUnbounded ? kUnbounded : most - 1;
    const int32_t more =
        repeat(sequence({comma(), item}), std::max<int64_t>(0, least - 1), most_more);
    return choice({nothing, sequence({literal("["), item, more, literal("]")})});
  }

  // --- schemas -----------------------------------------------------------------------------------

  // Schemas that hold each other, and those that only name each other, which never end.
  int32_t of_schema(const Json& schema, const std::string& where, int depth) {
    check(++levels_ <= kMostLevels, ErrorKind::usage,
          "{}: it leads to itself, or stands in too many others", where);
    const int32_t made = of_schema_within(schema, where, depth);
    --levels_;
    return made;
  }

  int32_t of_schema_within(const Json& schema, const std::string& where, int depth) {
    if (schema.is_bool()) return schema.as_bool() ? any_value(depth) : kNever;
    check(schema.is_object(), ErrorKind::usage, "{} is {}; a schema is an object", where,
          schema.describe());
    if (const Json* reference = schema.find("$ref")) {
      check_keywords(schema, {"$ref"}, where);
      return of_reference(*reference, where, depth);
    }
    if (schema.contains("const") || schema.contains("enum")) return of_values(schema, where);
    for (const char* several : {"anyOf", "allOf"}) {
      const Json* list = schema.find(several);
      if (list == nullptr) continue;
      check_keywords(schema, {several}, where);
      check(std::string_view(several) == "anyOf" || list->size() == 1, ErrorKind::usage,
            "{}: 'allOf' of several schemas is not there", where);
      std::vector<int32_t> parts;
      for (const Json& one : list->as_array(where + ": anyOf")) {
        parts.push_back(
            of_schema(one, fmt::format("{}.{}[{}]", where, several, parts.size()), depth));
      }
      return choice(std::move(parts));
    }
    const Json* type = schema.find("type");
    if (type == nullptr) {
      const bool has_members = schema.contains("properties");
      if (!has_members) check_keywords(schema, {}, where);
      return has_members ? of_type("object", schema, where, depth) : any_value(depth);
    }
    if (type->is_string()) return of_type(type->as_string(), schema, where, depth);
    std::vector<int32_t> parts;
    for (const std::string& one : type->as_strings(where + ": 'type'")) {
      parts.push_back(of_type(one, schema, where, depth));
    }
    return choice(std::move(parts));
  }

  int32_t of_reference(const Json& reference, const std::string& where, int depth) {
    const std::string& path = reference.as_string(where + ": '$ref'");
    if (path == "#") {
      return depth == 0 ? kNever : once(fmt::format("# {}", depth), [&] {
        return of_schema(root_, "the schema", depth - 1);
      });
    }
    for (const std::string kind : {"$defs", "definitions"}) {
      const std::string front = "#/" + kind + "/";
      if (!path.starts_with(front)) continue;
      const Json* all = root_.find(kind);
      const Json* found = all == nullptr ? nullptr : all->find(path.substr(front.size()));
      check(found != nullptr, ErrorKind::usage, "{}: there is no {}", where, path);
      return once(fmt::format("{} {}", path, depth),
                  [&] { return of_schema(*found, path, depth); });
    }
    fail(ErrorKind::usage, "{}: '$ref' {} is not there; #, #/$defs and #/definitions are", where,
         path);
  }

  // Those that const, enum and type all allow.
  int32_t of_values(const Json& schema, const std::string& where) {
    check_keywords(schema, {"enum", "const", "type"}, where);
    const Json *only = schema.find("const"), *several = schema.find("enum"),
               *type = schema.find("type");
    std::vector<std::string> types;
    if (type != nullptr && type->is_string()) types = {type->as_string()};
    if (type != nullptr && !type->is_string()) types = type->as_strings(where + ": 'type'");
    const auto is_allowed = [&](const Json& value) {
      const auto fits = [&](const std::string& one) { return is_of(value, one, where); };
      return (only == nullptr || value == *only) &&
             (type == nullptr || std::ranges::any_of(types, fits));
    };
    if (several == nullptr) return is_allowed(*only) ? literal(only->dump()) : kNever;
    std::vector<int32_t> parts;
    for (const Json& value : several->as_array(where + ": 'enum'")) {
      if (is_allowed(value)) parts.push_back(literal(value.dump()));
    }
    return choice(std::move(parts));
  }
  static bool is_of(const Json& value, const std::string& type, const std::string& where) {
    if (type == "string") return value.is_string();
    if (type == "integer") return value.is_int();
    if (type == "number") return value.is_number();
    if (type == "boolean") return value.is_bool();
    if (type == "null") return value.is_null();
    if (type == "array") return value.is_array();
    check_is_object(type, where);
    return value.is_object();
  }

  // All others are known.
  static void check_is_object(const std::string& type, const std::string& where) {
    check(type == "object", ErrorKind::usage, "{}: there is no type '{}'", where, type);
  }
  static void check_keywords(const Json& schema, std::initializer_list<std::string_view> known,
                             const std::string& where) {
    for (const auto& [keyword, value] : schema.as_object()) {
      const bool is_known = std::ranges::find(known, keyword) != known.end();
      check(is_known || kAnnotations.contains(keyword), ErrorKind::usage,
            "{}: '{}' is not there in JSON schemas here", where, keyword);
    }
  }
  static int64_t count_of(const Json& schema, const char* keyword, int64_t otherwise,
                          const std::string& where) {
    const Json* value = schema.find(keyword);
    if (value == nullptr) return otherwise;
    const int64_t count = value->as_int(where + ": '" + keyword + "'");
    check(count >= 0, ErrorKind::usage, "{}: '{}' is {}", where, keyword, count);
    return std::min(count, kUnbounded);
  }

  int32_t of_type(const std::string& type, const Json& schema, const std::string& where,
                  int depth) {
    // What belongs to one of several types is passed over by the others.
    static constexpr std::string_view kAll[] = {
        "type",     "properties", "required", "additionalProperties", "items", "minItems",
        "maxItems", "minLength",  "maxLength"};
    for (const auto& [keyword, value] : schema.as_object()) {
      check(std::ranges::find(kAll, keyword) != std::end(kAll) || kAnnotations.contains(keyword),
            ErrorKind::usage, "{}: '{}' is not there in JSON schemas here", where, keyword);
    }
    if (type == "string") {
      return string(count_of(schema, "minLength", 0, where),
                    count_of(schema, "maxLength", kUnbounded, where));
    }
    if (type == "integer") return integer();
    if (type == "number") return number();
    if (type == "boolean") return choice({literal("true"), literal("false")});
    if (type == "null") return literal("null");
    if (type == "array") {
      const Json* items = schema.find("items");
      const int32_t item = depth == 0         ? kNever
                           : items == nullptr ? any_value(depth - 1)
                                              : of_schema(*items, where + ".items", depth - 1);
      const int64_t least = count_of(schema, "minItems", 0, where),
                    most = count_of(schema, "maxItems", kUnbounded, where);
      if (least > most) return kNever;
      return item == kNever ? array(kNever, least, 0) : array(item, least, most);
    }
    check_is_object(type, where);
    return depth == 0 ? kNever : of_object(schema, where, depth);
  }

  int32_t of_object(const Json& schema, const std::string& where, int depth) {
    std::set<std::string, std::less<>> required;
    if (const Json* names = schema.find("required")) {
      for (const std::string& name : names->as_strings(where + ": 'required'"))
        required.insert(name);
    }
    const Json* properties = schema.find("properties");
    const Json* others = schema.find("additionalProperties");
    if (properties == nullptr || properties->size() == 0) {
      check(required.empty(), ErrorKind::usage, "{}: 'required' names what 'properties' has not",
            where);
      const bool is_closed = others != nullptr && *others == Json(false);
      if (is_closed || (properties != nullptr && others == nullptr)) return literal("{}");
      return free_object(others == nullptr
                             ? any_value(depth - 1)
                             : of_schema(*others, where + ".additionalProperties", depth - 1));
    }
    for (const std::string& name : required) {
      check(properties->contains(name), ErrorKind::usage,
            "{}: 'required' names '{}', which 'properties' has not", where, name);
    }
    // From the last to the first: what may follow, behind a member and behind none.
    int32_t behind = literal("}"), first = behind;
    const auto& members = properties->as_object(where + ": 'properties'");
    for (size_t i = members.size(); i-- > 0;) {
      const auto& [name, one] = members[i];
      const int32_t value = of_schema(one, where + ".properties." + name, depth - 1);
      const int32_t member = sequence({literal(Json(name).dump()), colon(), value});
      const bool is_needed = required.contains(name);
      const int32_t with_comma = sequence({comma(), member, behind}),
                    without = sequence({member, behind});
      first = is_needed ? without : choice({without, first});
      behind = is_needed ? with_comma : choice({with_comma, behind});
    }
    return sequence({literal("{"), first});
  }

  const Json& root_;
  JsonGrammar grammar_;
  std::map<std::string, int32_t> named_;
  static constexpr int kMostLevels = 512;
  int levels_ = 0;  // schemas that are being read
};

}  // namespace

int64_t JsonGrammar::size() const {
  return static_cast<int64_t>(rules.capacity() * sizeof(JsonRule) + texts.capacity() +
                              all_parts.capacity() * sizeof(int32_t) +
                              sets.capacity() * sizeof(sets[0]));
}

JsonGrammar json_grammar(const Json& schema) { return GrammarBuilder(schema).build(); }

}  // namespace heddle
