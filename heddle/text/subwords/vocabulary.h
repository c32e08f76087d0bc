// Tokens of text and their ids.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "heddle/base/json/json.h"

namespace heddle {

/// Lets maps from strings be asked for string_views.
struct StringHash {
  using is_transparent = void;
  size_t operator()(std::string_view s) const { return std::hash<std::string_view>()(s); }
};
template <class T>
using StringMap = std::unordered_map<std::string, T, StringHash, std::equal_to<>>;

/// The longest token: a text is compared with all that begin at each of its places.
inline constexpr size_t kMaxTokenBytes = 4096;

/// Tokens and ids, one to one; ids may leave gaps.
class Vocabulary {
 public:
  Vocabulary() = default;
  Vocabulary(Vocabulary&&) = default;
  Vocabulary& operator=(Vocabulary&&) = default;

  /// An object of tokens and their ids, as in vocab.json. `source` opens the messages.
  /// Errors: data if it is empty, a token has more than kMaxTokenBytes, or an id is negative, comes
  /// twice, or is far beyond their number.
  static Vocabulary of_json(const Json& tokens, const std::string& source);
  /// Tokens with the ids 0, 1, ... Errors: data if one comes twice or is too long.
  static Vocabulary of_list(std::vector<std::string> tokens, const std::string& source);
  /// The lines of a vocab.txt: of a token that comes twice the later counts, and the id of the
  /// earlier is a gap, as transformers has it; there is a warning. Errors: data if one is too long.
  static Vocabulary of_lines(std::vector<std::string> tokens, const std::string& source);

  std::optional<int32_t> find(std::string_view token) const {
    const auto at = ids_.find(token);
    return at == ids_.end() ? std::nullopt : std::optional<int32_t>(at->second);
  }
  /// nullptr for a gap, or an id beyond.
  const std::string* token(int32_t id) const {
    return id >= 0 && static_cast<size_t>(id) < tokens_.size() ? tokens_[id] : nullptr;
  }
  /// One more than the largest id.
  int64_t size() const { return static_cast<int64_t>(tokens_.size()); }
  /// The ids of the tokens of a text's bytes, "<0x0A>"; nothing if one is missing.
  std::optional<std::vector<int32_t>> find_bytes(std::string_view text) const;
  /// The id of the token for what is unknown. Errors: data if it is not there.
  int32_t find_unk(const std::string& unk, const std::string& source) const;

 private:
  void add(std::string token, int64_t id, const std::string& source);

  StringMap<int32_t> ids_;
  std::vector<const std::string*> tokens_;  // keys of ids_, which stay where they are
};

/// Errors: data unless the id could be one of a vocabulary of so many entries: 0 or more, and not
/// so large that a table by id would be mostly gaps.
void check_token_id(int64_t id, size_t entries, std::string_view token, const std::string& source);

/// A trie over bytes; its edges lie in one hash table.
class TokenTrie {
 public:
  TokenTrie();

  /// Adds a string, which is not empty; a later value replaces an earlier one.
  void add(std::string_view text, int32_t value);

  bool is_empty() const { return values_.size() == 1; }

  /// Calls f(length, value) for each string that begins the text, the shortest first.
  template <class F>
  void each_prefix(std::string_view text, const F& f) const {
    uint32_t node = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      node = child(node, static_cast<unsigned char>(text[i]));
      if (node == 0) return;
      if (values_[node] >= 0) f(i + 1, values_[node]);
    }
  }

 private:
  struct Edge {
    uint64_t key = 0;  // node and byte, plus one; 0: no edge
    uint32_t to = 0;
  };

  uint32_t child(uint32_t node, unsigned char byte) const { return edges_[place(node, byte)].to; }
  size_t place(uint32_t node, unsigned char byte) const;
  void grow();

  std::vector<Edge> edges_;
  std::vector<int32_t> values_;  // by node; -1: no string ends here
};

}  // namespace heddle
