// Regular expressions over UTF-8, by ICU.
#include "heddle/text/regex.h"

#include <unicode/regex.h>
#include <unicode/utext.h>

#include "heddle/base/error.h"
#include "heddle/text/utf8.h"

namespace heddle {

namespace {

// ICU's unit is ten thousand steps of its engine, about a millisecond; for one match.
constexpr int32_t kMostSteps = 2'000;
constexpr int32_t kMostStackBytes = 64 << 20;

struct CloseText {
  void operator()(UText* text) const { utext_close(text); }
};

/// The pattern with \w and \W as `onig` has them: ICU's holds the joiners, and not the small
/// figures of Latin-1.
std::string with_own_words(const std::string& pattern) {
  static constexpr const char* kWord =
      "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\u00B2\\u00B3\\u00B9\\u00BC-\\u00BE]";
  std::string result;
  for (size_t at = 0; at < pattern.size(); ++at) {
    const bool is_escape = pattern[at] == '\\' && at + 1 < pattern.size();
    if (is_escape && (pattern[at + 1] == 'w' || pattern[at + 1] == 'W')) {
      result += pattern[at + 1] == 'w' ? "[" : "[^";
      result += kWord;
      ++at;
    } else if (is_escape) {
      result += pattern[at];
      result += pattern[++at];
    } else {
      result += pattern[at];
    }
  }
  return result;
}

}  // namespace

struct Regex::Impl {
  std::unique_ptr<icu::RegexPattern> compiled;
  std::string pattern, source;
};

Regex::Regex(const std::string& pattern, const std::string& source)
    : impl_(std::make_unique<Impl>()) {
  UErrorCode status = U_ZERO_ERROR;
  UParseError place{};
  // As the library `onig` of `tokenizers` has it: ^ and $ at every line, lines end with \n alone.
  impl_->compiled.reset(
      icu::RegexPattern::compile(icu::UnicodeString::fromUTF8(with_own_words(pattern)),
                                 UREGEX_MULTILINE | UREGEX_UNIX_LINES, place, status));
  check(U_SUCCESS(status), ErrorKind::data,
        "{}: the regular expression '{}' cannot be read: {} at character {}", source, pattern,
        u_errorName(status), place.offset);
  impl_->pattern = pattern;
  impl_->source = source;
}

Regex::~Regex() = default;
Regex::Regex(Regex&&) noexcept = default;

std::vector<std::pair<size_t, size_t>> Regex::find_all(std::string_view text) const {
  UErrorCode status = U_ZERO_ERROR;
  const std::unique_ptr<UText, CloseText> input(
      utext_openUTF8(nullptr, text.data(), static_cast<int64_t>(text.size()), &status));
  const std::unique_ptr<icu::RegexMatcher> matcher(impl_->compiled->matcher(status));
  std::vector<std::pair<size_t, size_t>> matches;
  if (U_SUCCESS(status)) {
    matcher->setTimeLimit(kMostSteps, status);
    matcher->setStackLimit(kMostStackBytes, status);
    matcher->reset(input.get());
    for (size_t at = 0; at <= text.size();) {
      matcher->reset(static_cast<int64_t>(at), status);  // a new budget of steps
      if (!matcher->find(status)) break;
      const auto begin = static_cast<size_t>(matcher->start64(status));
      at = static_cast<size_t>(matcher->end64(status));
      matches.emplace_back(begin, at);
      if (begin == at && at < text.size()) {
        next_code_point(text, at);
      } else if (begin == at) {
        break;
      }
    }
  }
  check(U_SUCCESS(status), ErrorKind::data,
        "{}: the regular expression '{}' fails on a text of {} bytes: {}", impl_->source,
        impl_->pattern, text.size(), u_errorName(status));
  return matches;
}

}  // namespace heddle
