// ICU's iterator over each line.
#include "heddle/text/strings/sentences.h"

#include <unicode/brkiter.h>
#include <unicode/filteredbrk.h>
#include <unicode/utext.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "heddle/base/error.h"

namespace heddle {
namespace {

constexpr std::string_view kSpaces = " \t\r\n\v\f";

std::unique_ptr<icu::BreakIterator> make_iterator(const std::string& language) {
  const icu::Locale locale = icu::Locale::createFromName(language.c_str());
  UErrorCode status = U_ZERO_ERROR;
  std::unique_ptr<icu::BreakIterator> plain(
      icu::BreakIterator::createSentenceInstance(locale, status));
  check(U_SUCCESS(status), ErrorKind::system, "ICU has no rules for sentences: {}",
        u_errorName(status));
  // Without abbreviations of the language there is no such iterator.
  const std::unique_ptr<icu::FilteredBreakIteratorBuilder> builder(
      icu::FilteredBreakIteratorBuilder::createInstance(locale, status));
  if (U_FAILURE(status)) return plain;
  std::unique_ptr<icu::BreakIterator> filtered(
      builder->wrapIteratorWithFilter(plain.release(), status));  // takes it in any case
  check(U_SUCCESS(status) && filtered, ErrorKind::system,
        "ICU's rules for sentences cannot be used: {}", u_errorName(status));
  return filtered;
}

// To make one takes 300 µs, to clone it 0.5.
std::unique_ptr<icu::BreakIterator> iterator_of(const std::string& language) {
  constexpr size_t kMostLanguages = 64;
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<icu::BreakIterator>> known;
  const std::scoped_lock lock(mutex);
  auto found = known.find(language);
  if (found == known.end()) {
    if (known.size() == kMostLanguages) known.clear();
    found = known.emplace(language, make_iterator(language)).first;
  }
  return std::unique_ptr<icu::BreakIterator>(found->second->clone());
}

}  // namespace

std::string without_lines(std::string_view text) {
  std::string line(text);
  std::ranges::replace_if(
      line, [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return line;
}

struct SentenceSplitter::Rules {
  std::unique_ptr<icu::BreakIterator> iterator;
};

SentenceSplitter::SentenceSplitter(const std::string& language)
    : rules_(std::make_unique<Rules>(iterator_of(language))) {
  check(rules_->iterator != nullptr, ErrorKind::system, "ICU has no memory for sentences");
}

SentenceSplitter::~SentenceSplitter() = default;

std::vector<TextPart> SentenceSplitter::split(std::string_view text, bool ends_at_lines) const {
  if (!ends_at_lines) return split(without_lines(text));
  std::vector<TextPart> parts;
  const auto add = [&](size_t begin, size_t end) {
    begin = std::min(end, text.find_first_not_of(kSpaces, begin));
    while (end > begin && kSpaces.find(text[end - 1]) != kSpaces.npos) --end;
    if (end > begin) parts.push_back({begin, end});
  };
  for (size_t line = 0; line < text.size();) {
    const size_t end = std::min(text.find('\n', line), text.size());
    UErrorCode status = U_ZERO_ERROR;
    const icu::LocalUTextPointer bytes(
        utext_openUTF8(nullptr, text.data() + line, static_cast<int64_t>(end - line), &status));
    rules_->iterator->setText(bytes.getAlias(), status);
    check(U_SUCCESS(status), ErrorKind::system, "ICU cannot read a text: {}", u_errorName(status));
    int32_t from = rules_->iterator->first();
    for (int32_t to = rules_->iterator->next(); to != icu::BreakIterator::DONE;
         to = rules_->iterator->next()) {
      add(line + static_cast<size_t>(from), line + static_cast<size_t>(to));
      from = to;
    }
    line = end + 1;
  }
  return parts;
}

}  // namespace heddle
