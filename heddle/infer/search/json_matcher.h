// Beginnings of JSON texts that a grammar allows, byte by byte.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "heddle/infer/search/json_grammar.h"

namespace heddle {

/// Where one reading of a text stands in the grammar.
struct JsonStack {
  struct Frame {
    int32_t rule;
    int64_t at;  ///< parts, bytes or times that are done; of a key what its character still needs
    bool operator==(const Frame&) const = default;
  };
  /// Keys of the objects that are open, the innermost first.
  struct Keys {
    std::vector<std::string> names = {};
    std::shared_ptr<const Keys> outer = {};
  };
  std::vector<Frame> frames = {};
  std::shared_ptr<const Keys> keys = {};
  std::string key = {};  ///< as far as it is read
};

/// All readings that are possible: more than one where choices begin alike.
class JsonMatcher {
 public:
  /// The grammar outlives it.
  explicit JsonMatcher(const JsonGrammar& grammar);

  /// Readings that are followed at most: of more the longest are dropped, so that less may come,
  /// but what comes is right.
  static constexpr size_t kMostReadings = 256;

  /// What it becomes by a byte. Errors: none.
  JsonMatcher behind(uint8_t byte) const;
  bool is_possible() const { return is_whole_ || !stacks_.empty(); }
  /// Reads a byte. returns: false, and nothing is possible any more, if it cannot come here
  bool read(uint8_t byte);
  bool read(std::string_view bytes);
  /// Whether the text so far is whole.
  bool is_whole() const { return is_whole_; }
  /// Whether nothing can be added.
  bool is_over() const { return is_whole_ && stacks_.empty(); }
  /// Bytes that the shortest rest has.
  int64_t rest() const;
  /// Whether the text stands between characters of a string, so that all of them that need no
  /// escape are alike.
  bool is_in_string() const;
  /// The same of a key that an object has not yet. returns: its beginning and the keys that there
  /// are; nullptr where it does not.
  const JsonStack* in_key() const;
  /// Readings that are followed.
  size_t readings() const { return stacks_.size(); }
  /// What tells it from others: equal ones go on alike.
  std::string identity() const;
  /// Bytes of memory that it takes at most: readings may share keys.
  int64_t size() const;

 private:
  void expand(JsonStack stack, std::vector<JsonStack>& to, int depth = 0);
  void add(JsonStack stack, std::vector<JsonStack>& to) const;
  JsonMatcher(const JsonGrammar* grammar) : grammar_(grammar) {}
  bool step(JsonStack& stack, uint8_t byte) const;
  bool takes(const JsonStack& stack, uint8_t byte) const;
  bool step_key(JsonStack& stack, uint8_t byte) const;
  int64_t rest_of(const JsonStack& stack) const;
  static int64_t rest_of_key(const JsonStack& stack);
  const JsonRule& rule(int32_t i) const { return grammar_->rules[static_cast<size_t>(i)]; }

  const JsonGrammar* grammar_;
  std::vector<JsonStack> stacks_;  // each waits for a byte: its last frame is bytes, literal or key
  bool is_whole_ = false;
};

}  // namespace heddle
