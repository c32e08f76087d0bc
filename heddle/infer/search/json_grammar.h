// The JSON texts that a schema allows, as a grammar over bytes.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/base/json/json.h"

namespace heddle {

/// A part of a grammar.
struct JsonRule {
  enum class Kind : uint8_t {
    bytes,      ///< one of a set
    literal,    ///< a text
    sequence,   ///< parts in order
    choice,     ///< one of the parts
    repeat,     ///< the one part, `least` to `most` times
    open_keys,  ///< nothing: keys of an object begin to be counted
    free_key,   ///< a key that the object has not yet, without escapes, up to its '"'
    close_keys
  };
  Kind kind = Kind::sequence;
  bool has_key = false;  ///< a free_key of an object that is open already is among its parts
  uint32_t first = 0, count = 0;  ///< of a literal its bytes, of a set its number, else its parts
  int64_t least = 0, most = 0;
  int64_t bytes = 0;  ///< of the shortest text
};

struct JsonGrammar {
  std::vector<JsonRule> rules = {};
  std::string texts = {};  ///< of all literals
  std::vector<int32_t> all_parts = {};
  std::vector<std::array<uint64_t, 4>> sets = {};
  int32_t start = 0;
  int32_t character_begin = 0, character_end = 0;  ///< rules of a string's characters

  std::string_view text(const JsonRule& r) const {
    return std::string_view(texts).substr(r.first, r.count);
  }
  std::span<const int32_t> parts(const JsonRule& r) const {
    return std::span(all_parts).subspan(r.first, r.count);
  }
  bool has(const JsonRule& r, uint8_t byte) const {
    return (sets[r.first][byte / 64] >> (byte % 64) & 1) != 0;
  }
  /// That it takes in memory.
  int64_t size() const;
};

inline constexpr int64_t kUnbounded = int64_t{1} << 40;

/// The texts of a schema: null for any object. Of objects the properties come in the schema's
/// order, and none but them where there are some; numbers have at most 15 digits; between parts
/// stands at most one space. Everything that it gives is valid, not all that is valid can be given.
/// Read: type (one or several), properties, required, additionalProperties, items, minItems,
/// maxItems, minLength, maxLength, enum, const, anyOf, allOf of one, $ref to #/$defs and
/// #/definitions, true; annotations are passed over. Beside enum and const may stand each other and
/// type, beside anyOf, allOf and $ref nothing. Errors: usage, naming the keyword and where it
/// stands, for all else, for schemas that no text fits within 32
/// levels, and for those that come to more than 65,536 rules, some six a property.
JsonGrammar json_grammar(const Json& schema);

}  // namespace heddle
