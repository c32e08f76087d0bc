// Aho and Corasick's automaton of the strings read backwards.
#include "heddle/text/strings/longest_matches.h"

#include <cstdint>
#include <unordered_map>

namespace heddle {
namespace {

class Automaton {
 public:
  explicit Automaton(std::span<const std::string> strings) {
    for (const std::string& one : strings) add(one);
    link();
  }

  // The state behind `byte`: that of the longest end of what was read that begins a string.
  size_t next(size_t state, char byte) const {
    for (;; state = nodes_[state].shorter) {
      if (const auto child = children_.find(key(state, byte)); child != children_.end()) {
        return child->second;
      }
      if (state == 0) return 0;
    }
  }
  size_t longest(size_t state) const { return nodes_[state].longest; }

 private:
  struct Node {
    size_t parent = 0, depth = 0;
    char byte = 0;
    size_t shorter = 0;  // the longest end of this that is a node too
    size_t longest = 0;  // string that ends here
  };
  static uint64_t key(size_t state, char byte) {
    return uint64_t{state} << 8 | static_cast<unsigned char>(byte);
  }

  void add(const std::string& string) {
    size_t at = 0;
    for (size_t i = string.size(); i-- > 0;) {
      const auto [child, is_new] = children_.try_emplace(key(at, string[i]), nodes_.size());
      if (is_new) {
        nodes_.push_back({.parent = at, .depth = nodes_[at].depth + 1, .byte = string[i]});
      }
      at = child->second;
    }
    nodes_[at].longest = string.size();
  }

  // Nodes in the order of their depth: each from its parent's.
  void link() {
    std::vector<std::vector<size_t>> by_depth;
    for (size_t n = 1; n < nodes_.size(); ++n) {
      if (by_depth.size() < nodes_[n].depth) by_depth.resize(nodes_[n].depth);
      by_depth[nodes_[n].depth - 1].push_back(n);
    }
    for (const std::vector<size_t>& level : by_depth) {
      for (const size_t n : level) {
        Node& node = nodes_[n];
        if (node.depth > 1) node.shorter = next(nodes_[node.parent].shorter, node.byte);
        if (node.longest == 0) node.longest = nodes_[node.shorter].longest;
      }
    }
  }

  std::vector<Node> nodes_ = {{}};
  std::unordered_map<uint64_t, size_t> children_;
};

}  // namespace

std::vector<size_t> longest_matches(std::string_view text, std::span<const std::string> strings) {
  const Automaton automaton(strings);
  std::vector<size_t> lengths(text.size());
  size_t state = 0;
  for (size_t i = text.size(); i-- > 0;) {
    state = automaton.next(state, text[i]);
    lengths[i] = automaton.longest(state);
  }
  return lengths;
}

}  // namespace heddle
