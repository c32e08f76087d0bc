// Strings and regular expressions to look for, and what else components of tokenizer.json share.
#include "heddle/text/strings/pattern.h"

#include <unicode/regex.h>
#include <unicode/unistr.h>

#include <algorithm>
#include <iterator>

#include "heddle/base/error.h"
#include "heddle/base/utf8.h"
#include "heddle/text/strings/onig_syntax.h"
#include "heddle/text/strings/strings.h"

namespace heddle {
namespace {

constexpr int32_t kMostStackBytes = 64 << 20;

/// Steps of ICU's engine for all matches of a text together, in its unit of ten thousand: enough
/// for those that look at all of a text of 20,000 bytes from each of its places, and at each place
/// of a longer one at some hundred bytes.
int32_t most_steps(size_t bytes) {
  return static_cast<int32_t>(2'000 + 2 * std::min<size_t>(bytes, 50'000) + bytes / 100);
}

}  // namespace

class Pattern::Regex {
 public:
  Regex(const std::string& pattern, const std::string& source)
      : pattern_(pattern), source_(source) {
    UErrorCode status = U_ZERO_ERROR;
    UParseError place{};
    // As the library `onig` of `tokenizers` has it: ^ and $ at every line, lines end with \n alone.
    compiled_.reset(
        icu::RegexPattern::compile(icu::UnicodeString::fromUTF8(icu_pattern(pattern, source)),
                                   UREGEX_MULTILINE | UREGEX_UNIX_LINES, place, status));
    check(U_SUCCESS(status), ErrorKind::data,
          "{}: the regular expression '{}' cannot be read: {} at character {}", source, pattern,
          u_errorName(status), place.offset);
  }

  std::vector<std::pair<size_t, size_t>> find_all(std::string_view text) const {
    UErrorCode status = U_ZERO_ERROR;
    // In UTF-16, of which ICU sees all at once; of UTF-8 it would decode a few bytes again and
    // again.
    const auto input =
        icu::UnicodeString::fromUTF8({text.data(), static_cast<int32_t>(text.size())});
    const std::unique_ptr<icu::RegexMatcher> matcher(compiled_->matcher(input, status));
    size_t units = 0, bytes = 0;  // a place in both
    const auto bytes_before = [&](int32_t place) {
      while (units < static_cast<size_t>(place)) {
        units += next_code_point(text, bytes) > 0xFFFF ? 2 : 1;
      }
      return bytes;
    };
    std::vector<std::pair<size_t, size_t>> matches;
    if (U_SUCCESS(status)) {
      matcher->setTimeLimit(most_steps(text.size()), status);
      matcher->setStackLimit(kMostStackBytes, status);
      while (matcher->find(status)) {
        const size_t begin = bytes_before(matcher->start(status));
        const size_t end = bytes_before(matcher->end(status));
        const bool is_empty_again =
            begin == end && !matches.empty() && matches.back().second == end;
        if (!is_empty_again) matches.emplace_back(begin, end);
      }
    }
    check(U_SUCCESS(status), ErrorKind::data,
          "{}: the regular expression '{}' fails on a text of {} bytes: {}", source_, pattern_,
          text.size(), u_errorName(status));
    return matches;
  }

 private:
  std::string pattern_, source_;
  std::unique_ptr<icu::RegexPattern> compiled_;
};

Pattern Pattern::read(const Json& json, const std::string& source) {
  Pattern result;
  if (const Json* literal = json.find("String")) {
    result.literal_ = literal->as_string(source + ": pattern");
  } else if (const Json* regex = json.find("Regex")) {
    result.regex_ = std::make_shared<Regex>(regex->as_string(source + ": pattern"), source);
  } else {
    fail(ErrorKind::data,
         "{}: the pattern is {}; {{\"String\": ..}} or {{\"Regex\": ..}} is needed", source,
         json.describe());
  }
  return result;
}

std::vector<std::pair<size_t, size_t>> Pattern::find_all(std::string_view text) const {
  if (regex_) return regex_->find_all(text);
  std::vector<std::pair<size_t, size_t>> matches;
  if (literal_.empty()) return matches;
  for (size_t at = 0; (at = text.find(literal_, at)) != text.npos; at += literal_.size()) {
    matches.emplace_back(at, at + literal_.size());
  }
  return matches;
}

std::string Pattern::replace(std::string_view text, std::string_view content, size_t most) const {
  std::string result;
  size_t at = 0;
  for (const auto& [begin, end] : find_all(text)) {
    check_growth(result.size() + begin - at + content.size(), most);
    result.append(text.substr(at, begin - at)).append(content);
    at = end;
  }
  return result.append(text.substr(at));
}

const std::string& component_type(const Json& json, const std::string& source) {
  check(json.is_object() && json.contains("type"), ErrorKind::data,
        "{}: {} is no component; an object with a \"type\" is needed", source, json.describe());
  return json.get_string("type", source);
}

void fail_component(const char* what, const std::string& type, const std::string& known,
                    const std::string& source) {
  fail(ErrorKind::data, "{}: the {} '{}' is not supported; there are {}", source, what, type,
       known);
}

const Json::Array& sequence_of(const Json& json, const char* list, const std::string& source) {
  return json.at(list, source).as_array(source + ": " + list);
}

std::vector<PlacedComponent> flat_sequence(const Json& json, const char* list,
                                           const std::string& what, const std::string& source) {
  std::vector<PlacedComponent> parts;
  for (const Json& part : sequence_of(json, list, source)) {
    if (part.is_null()) continue;
    if (component_type(part, source + ": " + what) == "Sequence") {
      std::ranges::move(flat_sequence(part, list, what, source + ": Sequence"),
                        std::back_inserter(parts));
    } else {
      parts.emplace_back(&part, source);
    }
  }
  return parts;
}

bool bool_or(const Json& json, const char* key, bool otherwise, const std::string& source) {
  const Json* value = json.find(key);
  return value == nullptr || value->is_null() ? otherwise : value->as_bool(source + ": " + key);
}

std::string string_or(const Json& json, const char* key, const std::string& otherwise,
                      const std::string& source) {
  const Json* value = json.find(key);
  return value == nullptr || value->is_null() ? otherwise : value->as_string(source + ": " + key);
}

int64_t int_or(const Json& json, const char* key, int64_t otherwise, const std::string& source) {
  const Json* value = json.find(key);
  return value == nullptr || value->is_null() ? otherwise : value->as_int(source + ": " + key);
}

}  // namespace heddle
