// Precompiled character maps, SentencePiece's normalisation by a table of replacements: checked,
// and applied as `tokenizers` does. A map is the size of a double-array trie (uint32), its units
// (uint32, as Darts-clone has them), and replacements that end with '\0'.
#include <unicode/brkiter.h>
#include <unicode/utext.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "heddle/base/error.h"
#include "heddle/base/utf8.h"
#include "heddle/text/pipeline/pipeline.h"
#include "heddle/text/strings/strings.h"

namespace heddle {
namespace {

uint32_t unit_at(std::string_view units, size_t i) {
  uint32_t value;
  std::memcpy(&value, units.data() + sizeof value * i, sizeof value);
  return value;
}

/// From a unit to its children, each of which lies at the exclusive or with its byte.
size_t offset_of(uint32_t unit) {
  return static_cast<size_t>(unit >> 10) << ((unit & (1u << 9)) >> 6);
}

bool is_reached_by(uint32_t unit, uint32_t byte) { return (unit & 0x800000FFu) == byte; }
/// Where its children begin then stands the place of the rule's replacement.
bool ends_rule(uint32_t unit) { return (unit >> 8) & 1; }
constexpr uint32_t kPlace = 0x7FFFFFFFu;

constexpr size_t kMaxTrieBytes = size_t{8} << 20;  // nmt_nfkc_cf, the largest in use, has 0.3 MB
constexpr int kMaxRuleBytes = 256;                 // of what is replaced; bounds the recursion
constexpr size_t kMaxReplacementBytes = 256;       // NFKC's longest is 33
constexpr int kMaxMatches = 32;                    // Normalizer::kMaxTrieResultsSize

class TrieCheck {
 public:
  TrieCheck(std::string_view trie, std::string_view replacements)
      : trie_(trie),
        replacements_(replacements),
        units_(trie.size() / sizeof(uint32_t)),
        states_(units_) {}

  /// Throws std::runtime_error with the fault.
  void run() { visit(transition(0, unit_at(trie_, 0)), 0); }

 private:
  enum class Mark : uint8_t { unseen, open, done };
  struct State {
    Mark mark = Mark::unseen;
    int16_t height = 0;   // bytes of the longest path below
    int16_t matches = 0;  // the most rules that match on one path below
  };

  /// Where the children of the unit at `at` begin; all 256 of them may be looked at.
  size_t transition(size_t at, uint32_t value) const {
    const size_t base = at ^ offset_of(value);
    if ((base | 255) >= units_) throw std::runtime_error("a transition leaves the trie");
    return base;
  }

  void check_replacement(uint32_t value) const {
    const size_t at = value & kPlace;
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
      const uint32_t value = unit_at(trie_, base ^ c);
      if (!is_reached_by(value, c)) continue;
      const size_t child = transition(base ^ c, value);
      const bool is_rule = ends_rule(value);
      if (is_rule) check_replacement(unit_at(trie_, child));
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

constexpr size_t kLongestCluster = 5;  // bytes of a cluster that is looked up as a whole

class CharacterMap {
 public:
  CharacterMap(std::string charsmap, const std::string& source) : charsmap_(std::move(charsmap)) {
    const std::string fault = charsmap_fault(charsmap_);
    check(fault.empty(), ErrorKind::data, "{}: the character map is damaged: {}", source, fault);
    const uint32_t size = unit_at(charsmap_, 0);
    trie_ = std::string_view(charsmap_).substr(sizeof size, size);
    replacements_ = charsmap_.data() + sizeof size + size;
  }

  std::string apply(std::string_view text, size_t most) const {
    std::string result;
    const auto add = [&](std::string_view cluster) {
      add_cluster(cluster, result);
      check_growth(result.size(), most);
    };
    if (std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; })) {
      for (size_t begin = 0, end; begin < text.size(); begin = end) {
        end = begin + (text.substr(begin, 2) == "\r\n" ? 2 : 1);  // the one cluster of two
        add(text.substr(begin, end - begin));
      }
      return result;
    }
    for_clusters(text, add);
    return result;
  }

 private:
  template <class F>
  static void for_clusters(std::string_view text, const F& f) {
    UErrorCode status = U_ZERO_ERROR;
    // Making one takes long, and one must not be shared between threads.
    thread_local std::unique_ptr<icu::BreakIterator> clusters;
    if (!clusters) {  // or it failed, as without memory, when last asked for
      clusters.reset(icu::BreakIterator::createCharacterInstance(icu::Locale::getRoot(), status));
    }
    UText* input = nullptr;
    if (clusters && U_SUCCESS(status)) {
      input = utext_openUTF8(nullptr, text.data(), static_cast<int64_t>(text.size()), &status);
      clusters->setText(input, status);
      utext_close(input);  // the iterator has a copy
    }
    check(clusters && U_SUCCESS(status), ErrorKind::data,
          "tokenizer: cannot find the characters of a text: {}", u_errorName(status));
    int32_t begin = clusters->first();
    for (int32_t end; (end = clusters->next()) != icu::BreakIterator::DONE; begin = end) {
      f(text.substr(static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
    }
  }

  void add_cluster(std::string_view cluster, std::string& out) const {
    if (cluster.size() <= kLongestCluster) {
      if (const char* replacement = find(cluster)) {
        out += replacement;
        return;
      }
    }
    for (size_t at = 0; at < cluster.size();) {
      const size_t begin = at;
      next_code_point(cluster, at);
      const std::string_view character = cluster.substr(begin, at - begin);
      const char* replacement = find(character);
      out.append(replacement != nullptr ? std::string_view(replacement) : character);
    }
  }

  /// The replacement of the shortest rule that begins the text, nullptr if there is none. All of a
  /// cluster is exchanged for it, though the rule may be shorter: `tokenizers` does the same.
  const char* find(std::string_view text) const {
    size_t at = offset_of(unit_at(trie_, 0));
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte == 0) return nullptr;
      at ^= byte;
      const uint32_t value = unit_at(trie_, at);
      if (!is_reached_by(value, byte)) return nullptr;
      at ^= offset_of(value);
      if (ends_rule(value)) return replacements_ + (unit_at(trie_, at) & kPlace);
    }
    return nullptr;
  }

  std::string charsmap_;
  std::string_view trie_;
  const char* replacements_;
};

}  // namespace

std::string charsmap_fault(std::string_view charsmap) {
  if (charsmap.size() < sizeof(uint32_t)) return "it has no header";
  const uint32_t size = unit_at(charsmap, 0);
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

std::unique_ptr<Normalizer> make_charsmap_normalizer(std::string charsmap,
                                                     const std::string& source) {
  return std::make_unique<Normalizer>(
      [map = std::make_shared<const CharacterMap>(std::move(charsmap), source)](
          std::string_view text, size_t most) { return map->apply(text, most); });
}

}  // namespace heddle
