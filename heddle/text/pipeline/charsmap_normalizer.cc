// SentencePiece's normalisation by a table of replacements, as `tokenizers` applies it.
#include <unicode/brkiter.h>
#include <unicode/utext.h>

#include <cstring>

#include "heddle/base/error.h"
#include "heddle/base/utf8.h"
#include "heddle/text/pipeline/normalizer.h"
#include "heddle/text/strings/strings.h"
#include "heddle/text/subwords/model_check.h"

namespace heddle {

namespace {

constexpr size_t kLongestCluster = 5;  // bytes of a cluster that is looked up as a whole

bool is_ascii(std::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) >= 0x80) return false;
  }
  return true;
}

class CharacterMap {
 public:
  CharacterMap(std::string charsmap, const std::string& source) : charsmap_(std::move(charsmap)) {
    const std::string fault = charsmap_fault(charsmap_);
    check(fault.empty(), ErrorKind::data, "{}: the character map is damaged: {}", source, fault);
    uint32_t size = 0;
    std::memcpy(&size, charsmap_.data(), sizeof size);
    replacements_ = sizeof size + size;
  }

  std::string apply(std::string_view text, size_t most) const {
    std::string result;
    const auto add = [&](std::string_view cluster) {
      add_cluster(cluster, result);
      check_growth(result.size(), most);
    };
    if (is_ascii(text)) {
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

  uint32_t unit(size_t i) const {
    uint32_t value;
    std::memcpy(&value, charsmap_.data() + sizeof value * (i + 1), sizeof value);
    return value;
  }

  /// The replacement of the shortest rule that begins the text, nullptr if there is none. All of a
  /// cluster is exchanged for it, though the rule may be shorter: `tokenizers` does the same.
  const char* find(std::string_view text) const {
    const auto offset = [](uint32_t value) {
      return static_cast<size_t>(value >> 10) << ((value & (1u << 9)) >> 6);
    };
    size_t at = offset(unit(0));
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte == 0) return nullptr;
      at ^= byte;
      const uint32_t value = unit(at);
      if ((value & 0x800000FFu) != byte) return nullptr;
      at ^= offset(value);
      if ((value >> 8) & 1) return charsmap_.data() + replacements_ + (unit(at) & 0x7FFFFFFFu);
    }
    return nullptr;
  }

  std::string charsmap_;  // size of the trie (uint32), its units, replacements that end with '\0'
  size_t replacements_ = 0;
};

}  // namespace

std::unique_ptr<Normalizer> make_charsmap_normalizer(std::string charsmap,
                                                     const std::string& source) {
  return std::make_unique<Normalizer>(
      [map = std::make_shared<const CharacterMap>(std::move(charsmap), source)](
          std::string_view text, size_t most) { return map->apply(text, most); });
}

}  // namespace heddle
