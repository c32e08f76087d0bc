// Which of many strings stand at a place of a text.
#include "heddle/text/subwords/token_trie.h"

#include <utility>

namespace heddle {

TokenTrie::TokenTrie() : edges_(64), values_{-1} {}

size_t TokenTrie::place(uint32_t node, unsigned char byte) const {
  const uint64_t key = (uint64_t{node} << 8 | byte) + 1;
  const size_t mask = edges_.size() - 1;
  size_t at = (key * 0x9E3779B97F4A7C15u >> 20) & mask;  // 2^64 / golden ratio
  while (edges_[at].key != 0 && edges_[at].key != key) at = (at + 1) & mask;
  return at;
}

void TokenTrie::add(std::string_view text, int32_t value) {
  uint32_t node = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    size_t at = place(node, byte);
    if (edges_[at].key == 0) {
      if (values_.size() * 2 >= edges_.size()) {
        grow();
        at = place(node, byte);
      }
      edges_[at] = {(uint64_t{node} << 8 | byte) + 1, static_cast<uint32_t>(values_.size())};
      values_.push_back(-1);
    }
    node = edges_[at].to;
  }
  values_[node] = value;
}

void TokenTrie::grow() {
  const std::vector<Edge> old = std::exchange(edges_, std::vector<Edge>(edges_.size() * 2));
  for (const Edge& edge : old) {
    if (edge.key == 0) continue;
    const uint64_t key = edge.key - 1;
    edges_[place(static_cast<uint32_t>(key >> 8), static_cast<unsigned char>(key & 0xFF))] = edge;
  }
}

}  // namespace heddle
