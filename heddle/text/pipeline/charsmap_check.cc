// Checks a precompiled character map: a double-array trie (Darts-clone) and its replacements.
#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "heddle/base/utf8.h"
#include "heddle/text/subwords/model_check.h"

namespace heddle {

namespace {

constexpr size_t kMaxTrieBytes = size_t{8} << 20;  // nmt_nfkc_cf, the largest in use, has 0.3 MB
constexpr int kMaxRuleBytes = 256;                 // of what is replaced; bounds the recursion
constexpr size_t kMaxReplacementBytes = 256;       // NFKC's longest is 33
constexpr int kMaxMatches = 32;                    // Normalizer::kMaxTrieResultsSize

class TrieCheck {
 public:
  TrieCheck(std::string_view trie, std::string_view replacements)
      : trie_(trie), replacements_(replacements), units_(trie.size() / 4), states_(units_) {}

  /// Throws std::runtime_error with the fault.
  void run() { visit(transition(0, unit(0)), 0); }

 private:
  enum class Mark : uint8_t { unseen, open, done };
  struct State {
    Mark mark = Mark::unseen;
    int16_t height = 0;   // bytes of the longest path below
    int16_t matches = 0;  // the most rules that match on one path below
  };

  uint32_t unit(size_t i) const {
    uint32_t value;
    std::memcpy(&value, trie_.data() + 4 * i, 4);
    return value;
  }

  /// Where the children of the unit at `at` begin; all 256 of them may be looked at.
  size_t transition(size_t at, uint32_t value) const {
    const size_t offset = static_cast<size_t>(value >> 10) << ((value & (1u << 9)) >> 6);
    const size_t base = at ^ offset;
    if ((base | 255) >= units_) throw std::runtime_error("a transition leaves the trie");
    return base;
  }

  void check_replacement(uint32_t value) const {
    const size_t at = value & 0x7FFFFFFFu;
    if (at >= replacements_.size()) throw std::runtime_error("a replacement lies outside");
    const std::string_view text = replacements_.substr(at, replacements_.find('\0', at) - at);
    if (text.size() > kMaxReplacementBytes) throw std::runtime_error("a replacement is too long");
    if (first_invalid_utf8(text)) throw std::runtime_error("a replacement is not UTF-8");
  }

  /// The state of the node whose children begin at `base`, `depth` bytes from the root.
  State visit(size_t base, int depth) {
    if (states_[base].mark == Mark::done) return states_[base];
    if (states_[base].mark == Mark::open) throw std::runtime_error("the trie has a cycle");
    if (depth > kMaxRuleBytes) throw std::runtime_error("a rule is too long");
    states_[base].mark = Mark::open;
    State state{Mark::done, 0, 0};
    for (uint32_t c = 0; c < 256; ++c) {
      const uint32_t value = unit(base ^ c);
      if ((value & 0x800000FFu) != c) continue;
      const size_t child = transition(base ^ c, value);
      const bool is_rule = (value >> 8) & 1;
      if (is_rule) check_replacement(unit(child));
      const State below = visit(child, depth + 1);
      state.height = std::max<int16_t>(state.height, below.height + 1);
      state.matches = std::max<int16_t>(state.matches, below.matches + (is_rule ? 1 : 0));
    }
    if (state.height > kMaxRuleBytes) throw std::runtime_error("a rule is too long");
    if (state.matches > kMaxMatches) throw std::runtime_error("too many rules match one prefix");
    return states_[base] = state;
  }

  std::string_view trie_, replacements_;
  size_t units_;
  std::vector<State> states_;
};

}  // namespace

std::string charsmap_fault(std::string_view charsmap) {
  uint32_t size = 0;
  if (charsmap.size() < sizeof size) return "it has no header";
  std::memcpy(&size, charsmap.data(), sizeof size);
  charsmap.remove_prefix(sizeof size);
  if (size >= charsmap.size()) return "its trie is longer than the map";
  if (size == 0 || size % 4 != 0) return "the size of its trie is no multiple of 4";
  if (size > kMaxTrieBytes) return "its trie is larger than 8 MiB";
  const std::string_view replacements = charsmap.substr(size);
  if (replacements.back() != '\0') return "its last replacement has no end";
  try {
    TrieCheck(charsmap.substr(0, size), replacements).run();
  } catch (const std::runtime_error& e) {
    return e.what();
  }
  return "";
}

}  // namespace heddle
