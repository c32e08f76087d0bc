// The pre-tokenizers of tokenizer.json.
#include "heddle/text/pipeline/pipeline.h"

#include <algorithm>
#include <array>

#include "heddle/base/error.h"
#include "heddle/base/utf8.h"
#include "heddle/text/strings/pattern.h"
#include "heddle/text/strings/strings.h"

namespace heddle {
namespace {

/// What becomes of the places where a text is split.
enum class SplitBehavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

/// A part of a pre-token: what was looked for, or what is between.
struct SplitPart {
  size_t begin, end;
  bool is_match;
};

/// The parts of text by the matches in it.
std::vector<SplitPart> parts_of(const std::vector<std::pair<size_t, size_t>>& matches,
                                size_t size) {
  std::vector<SplitPart> parts;
  size_t at = 0;
  for (const auto& [begin, end] : matches) {
    if (at < begin) parts.push_back({at, begin, false});
    parts.push_back({begin, end, true});
    at = end;
  }
  if (at < size) parts.push_back({at, size, false});
  return parts;
}

/// Joins parts, or drops them, as the behavior says.
std::vector<SplitPart> behave(std::vector<SplitPart> parts, SplitBehavior behavior) {
  const bool is_mirrored = behavior == SplitBehavior::merged_with_next;
  const bool merges = is_mirrored || behavior == SplitBehavior::merged_with_previous;
  if (is_mirrored) std::ranges::reverse(parts);
  std::vector<SplitPart> kept;
  bool was_match = false;
  for (const SplitPart& part : parts) {
    const bool is_joined = behavior == SplitBehavior::contiguous
                               ? part.is_match == was_match
                               : merges && part.is_match && !was_match;
    if (is_joined && !kept.empty()) {
      kept.back().begin = std::min(kept.back().begin, part.begin);
      kept.back().end = std::max(kept.back().end, part.end);
    } else if (behavior != SplitBehavior::removed || !part.is_match) {
      kept.push_back(part);
    }
    was_match = part.is_match;
  }
  if (is_mirrored) std::ranges::reverse(kept);
  return kept;
}

/// Splits at what a function finds.
PreTokenizer splitter(std::function<std::vector<SplitPart>(std::string_view)> find,
                      SplitBehavior behavior) {
  return {[find = std::move(find), behavior](PreTokens& pre_tokens) {
    std::vector<PreTokens::Range> ranges;
    for (size_t i = 0; i < pre_tokens.ranges.size(); ++i) {
      const PreTokens::Range& old = pre_tokens.ranges[i];
      for (const SplitPart& part : behave(find(pre_tokens[i]), behavior)) {
        if (part.begin == part.end) continue;
        ranges.push_back(
            {old.begin + part.begin, old.begin + part.end, old.is_first && part.begin == 0});
      }
    }
    pre_tokens.ranges = std::move(ranges);
  }};
}

/// Splits at each character for which the function holds.
PreTokenizer split_at(bool (*holds)(char32_t), SplitBehavior behavior) {
  return splitter(
      [holds](std::string_view text) {
        std::vector<std::pair<size_t, size_t>> matches;
        for (size_t at = 0; at < text.size();) {
          const size_t begin = at;
          if (holds(next_code_point(text, at))) matches.emplace_back(begin, at);
        }
        return parts_of(matches, text.size());
      },
      behavior);
}

/// The ranges of a text from `begin` on, which begin with a sign each.
void add_ranges(size_t begin, bool is_first, const MetaspaceOptions& options, PreTokens& result) {
  const std::string& text = result.text;
  while (options.split && begin < text.size()) {
    const size_t next = text.find(options.sign, begin + 1);
    if (next == text.npos) break;
    result.ranges.push_back({begin, next, is_first});
    begin = next;
    is_first = false;
  }
  if (begin < text.size()) result.ranges.push_back({begin, text.size(), is_first});
}

/// Each part makes a few bytes of each; what all make of a text is bounded.
PreTokenizer in_turn(std::vector<PreTokenizer> parts) {
  const bool asks = std::ranges::any_of(parts, &PreTokenizer::asks_for_first);
  const auto split = [parts = std::move(parts)](PreTokens& pre_tokens) {
    const size_t most = most_bytes(pre_tokens.text.size());
    for (const PreTokenizer& part : parts) {
      part.split(pre_tokens);
      check_growth(pre_tokens.text.size(), most);
    }
  };
  return {split, asks};
}

SplitBehavior read_behavior(const Json& json, const std::string& source) {
  static const std::pair<const char*, SplitBehavior> kNames[] = {
      {"Removed", SplitBehavior::removed},
      {"Isolated", SplitBehavior::isolated},
      {"MergedWithPrevious", SplitBehavior::merged_with_previous},
      {"MergedWithNext", SplitBehavior::merged_with_next},
      {"Contiguous", SplitBehavior::contiguous}};
  const std::string name = string_or(json, "behavior", "Isolated", source);
  for (const auto& [known, behavior] : kNames) {
    if (name == known) return behavior;
  }
  fail_component("behavior", name,
                 "Removed, Isolated, MergedWithPrevious, MergedWithNext and Contiguous", source);
}

/// Splits at a pattern, or at what is between.
PreTokenizer split_at(Pattern pattern, bool is_inverted, SplitBehavior behavior) {
  return splitter(
      [pattern = std::move(pattern), is_inverted](std::string_view text) {
        std::vector<SplitPart> parts = parts_of(pattern.find_all(text), text.size());
        for (SplitPart& part : parts) part.is_match = part.is_match != is_inverted;
        return parts;
      },
      behavior);
}

enum class Class { letter, number, space, other };

Class class_of(char32_t c) {
  if (is_letter(c)) return Class::letter;
  if (is_number(c)) return Class::number;
  return is_white_space(c) ? Class::space : Class::other;
}

/// Finds GPT-2's words: contractions, and runs of letters, of numbers and of other characters with
/// a space before them or not, and runs of white space without the last character if a word
/// follows. The words lie end to end. Source: Radford et al. 2019, their code:
/// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
class WordFinder {
 public:
  explicit WordFinder(std::string_view text) : text_(text) {}

  /// The end of the word that begins at `at`.
  size_t end_of_word(size_t at) const {
    if (const size_t end = contraction(at)) return end;
    size_t first = at;
    Class kind = read(first);
    if (kind == Class::space) {
      if (text_[at] != ' ' || first == text_.size()) return spaces(at);
      kind = read(first);
      if (kind == Class::space) return spaces(at);
    }
    return run(first, kind);
  }

 private:
  /// The class of the character at `at`, which moves behind it.
  Class read(size_t& at) const { return class_of(next_code_point(text_, at)); }

  size_t run(size_t at, Class kind) const {
    for (size_t next = at; next < text_.size() && read(next) == kind;) at = next;
    return at;
  }

  size_t spaces(size_t begin) const {
    const size_t end = run(begin, Class::space);
    const size_t last = last_character(text_.substr(0, end));
    return end == text_.size() || last == begin ? end : last;
  }

  size_t contraction(size_t at) const {
    static constexpr std::array<std::string_view, 7> kEndings = {"'s", "'t",  "'re", "'ve",
                                                                 "'m", "'ll", "'d"};
    if (text_[at] != '\'') return 0;
    for (const std::string_view ending : kEndings) {
      if (text_.substr(at, ending.size()) == ending) return at + ending.size();
    }
    return 0;
  }

  std::string_view text_;
};

}  // namespace

MetaspaceOptions read_metaspace(const Json& json, const std::string& source) {
  MetaspaceOptions options{string_or(json, "replacement", "\u2581", source), PrependScheme::always,
                           bool_or(json, "split", true, source)};
  size_t end = 0;
  if (!options.sign.empty()) next_code_point(options.sign, end);
  check(end > 0 && end == options.sign.size(), ErrorKind::data,
        "{}: the replacement '{}' must be one character", source, options.sign);
  const std::string scheme = string_or(json, "prepend_scheme", "always", source);
  const bool is_known = scheme == "always" || scheme == "first" || scheme == "never";
  check(is_known, ErrorKind::data, "{}: prepend_scheme '{}'; there are always, first and never",
        source, scheme);
  if (scheme == "first") options.scheme = PrependScheme::first;
  if (scheme == "never") options.scheme = PrependScheme::never;
  if (!bool_or(json, "add_prefix_space", true, source)) {
    check(!json.contains("prepend_scheme") || scheme == "never", ErrorKind::data,
          "{}: add_prefix_space is false, but prepend_scheme '{}'; it must be never", source,
          scheme);
    options.scheme = PrependScheme::never;
  }
  return options;
}

PreTokenizer make_byte_level(bool add_prefix_space, bool use_regex) {
  return {[=](PreTokens& pre_tokens) {
    PreTokens result;
    result.text.reserve(pre_tokens.text.size() + pre_tokens.text.size() / 4);
    std::string with_space;
    for (size_t i = 0; i < pre_tokens.ranges.size(); ++i) {
      std::string_view pre_token = pre_tokens[i];
      if (add_prefix_space && !pre_token.starts_with(' ')) {
        with_space = " ";
        pre_token = with_space += pre_token;
      }
      const WordFinder words(pre_token);
      for (size_t begin = 0, end; begin < pre_token.size(); begin = end) {
        end = use_regex ? words.end_of_word(begin) : pre_token.size();
        const size_t at = result.text.size();
        append_byte_letters(pre_token.substr(begin, end - begin), result.text);
        result.ranges.push_back(
            {at, result.text.size(), pre_tokens.ranges[i].is_first && begin == 0});
      }
    }
    pre_tokens = std::move(result);
  }};
}

PreTokenizer make_bert_pre_tokenizer() {
  return in_turn({split_at(is_white_space, SplitBehavior::removed),
                  split_at(is_punctuation, SplitBehavior::isolated)});
}

PreTokenizer make_metaspace(MetaspaceOptions options) {
  const bool asks = options.scheme == PrependScheme::first;
  const auto split = [options = std::move(options)](PreTokens& pre_tokens) {
    PreTokens result;
    for (size_t i = 0; i < pre_tokens.ranges.size(); ++i) {
      const std::string_view pre_token = pre_tokens[i];
      const bool is_first = pre_tokens.ranges[i].is_first;
      const size_t begin = result.text.size();
      const bool has_sign = pre_token.starts_with(' ') || pre_token.starts_with(options.sign);
      const bool wants_sign = options.scheme == PrependScheme::always ||
                              (options.scheme == PrependScheme::first && is_first);
      if (wants_sign && !has_sign) result.text += options.sign;
      result.text += replace_all(pre_token, " ", options.sign);
      add_ranges(begin, is_first, options, result);
    }
    pre_tokens = std::move(result);
  };
  return {split, asks};
}

PreTokenizer read_pre_tokenizer(const Json& json, const std::string& source) {
  if (json.is_null()) return {};
  const std::string& type = component_type(json, source + ": pre_tokenizer");
  const std::string where = source + ": " + type;
  if (type == "Sequence") {
    std::vector<PreTokenizer> parts;
    for (const auto& [part, place] : flat_sequence(json, "pretokenizers", "pre_tokenizer", where)) {
      parts.push_back(read_pre_tokenizer(*part, place));
    }
    return in_turn(std::move(parts));
  }
  if (type == "ByteLevel") {
    return make_byte_level(bool_or(json, "add_prefix_space", true, where),
                           bool_or(json, "use_regex", true, where));
  }
  if (type == "Whitespace") {  // \w+|[^\w\s]+ : what is between is removed
    return in_turn({split_at(is_white_space, SplitBehavior::removed),
                    split_at(is_word_character, SplitBehavior::contiguous)});
  }
  if (type == "WhitespaceSplit") return split_at(is_white_space, SplitBehavior::removed);
  if (type == "BertPreTokenizer") return make_bert_pre_tokenizer();
  if (type == "Metaspace") return make_metaspace(read_metaspace(json, where));
  if (type == "Punctuation") return split_at(is_punctuation, read_behavior(json, where));
  if (type == "Digits") {
    return split_at(is_number, bool_or(json, "individual_digits", false, where)
                                   ? SplitBehavior::isolated
                                   : SplitBehavior::contiguous);
  }
  if (type == "Split") {
    return split_at(Pattern::read(json.at("pattern", where), where),
                    bool_or(json, "invert", false, where), read_behavior(json, where));
  }
  if (type == "CharDelimiterSplit") {
    const Json literal = Json::object({{"String", json.get_string("delimiter", where)}});
    return split_at(Pattern::read(literal, where), false, SplitBehavior::removed);
  }
  fail_component("pre_tokenizer", type,
                 "ByteLevel, Whitespace, WhitespaceSplit, BertPreTokenizer, Metaspace, "
                 "Punctuation, Digits, Split, CharDelimiterSplit and Sequence",
                 source);
}

}  // namespace heddle
