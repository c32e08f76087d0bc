// Which of many strings stand at a place of a text.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace heddle {

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
