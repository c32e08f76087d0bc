// The normalizers of tokenizer.json.
#include "heddle/text/pipeline/pipeline.h"

#include <unicode/normalizer2.h>

#include <algorithm>
#include <vector>

#include "heddle/base/error.h"
#include "heddle/base/utf8.h"
#include "heddle/text/strings/pattern.h"
#include "heddle/text/strings/strings.h"

namespace heddle {

namespace {

/// Of a function that makes a few bytes of each at most.
std::unique_ptr<Normalizer> of(std::function<std::string(std::string_view)> f,
                               Normalizer::Start keeps_start = {}) {
  return std::make_unique<Normalizer>(
      [f = std::move(f)](std::string_view text, size_t) { return f(text); },
      std::move(keeps_start));
}

/// The text with f(character, text so far) in place of each character.
template <class F>
std::string each_character(std::string_view text, const F& f) {
  std::string result;
  result.reserve(text.size());
  for (size_t at = 0; at < text.size();) f(next_code_point(text, at), result);
  return result;
}

using Form = const icu::Normalizer2* (*)(UErrorCode&);

/// Appends marks, and whatever else may join what stands before it, decomposed and in canonical
/// order: by combining class between characters of class 0.
void append_in_order(const icu::Normalizer2& normalizer, std::string_view run, std::string& out) {
  struct Mark {
    uint8_t order;
    char32_t c;
  };
  std::vector<Mark> marks;
  icu::UnicodeString parts;
  for (size_t at = 0; at < run.size();) {
    const char32_t c = next_code_point(run, at);
    const auto code = static_cast<UChar32>(c);
    if (!normalizer.getDecomposition(code, parts)) parts.setTo(code);
    for (int32_t i = 0; i < parts.length(); i = parts.moveIndex32(i, 1)) {
      const UChar32 part = parts.char32At(i);
      marks.push_back({normalizer.getCombiningClass(part), static_cast<char32_t>(part)});
    }
  }
  for (auto begin = marks.begin(); begin != marks.end();) {
    const auto end = std::find_if(begin, marks.end(), [](const Mark& m) { return m.order == 0; });
    std::stable_sort(begin, end, [](const Mark& a, const Mark& b) { return a.order < b.order; });
    begin = std::find_if(end, marks.end(), [](const Mark& m) { return m.order != 0; });
  }
  for (const Mark& mark : marks) append_utf8(mark.c, out);
}

/// The text with its long runs of marks in canonical order, which no normal form tells from it.
/// ICU inserts mark after mark where it belongs: for a run of n, n * n steps.
std::string with_marks_in_order(const icu::Normalizer2& normalizer, std::string_view text) {
  constexpr size_t kLongRun = 32;     // characters
  constexpr char32_t kFirst = 0x300;  // none before it joins what stands before it
  std::string result;
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    size_t next = begin, count = 0;
    for (; at < text.size(); at = next, ++count) {
      const char32_t c = next_code_point(text, next);
      if (c < kFirst || normalizer.hasBoundaryBefore(static_cast<UChar32>(c))) break;
    }
    if (count > kLongRun) {
      result.append(text.substr(done, begin - done));
      append_in_order(normalizer, text.substr(begin, at - begin), result);
      done = at;
    }
    at = next;
  }
  return result.append(text.substr(done));
}

std::string unicode_form(Form form, std::string_view given) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* normalizer = form(status);
  std::string result, text;
  if (U_SUCCESS(status)) {
    text = with_marks_in_order(*normalizer, given);
    check_growth(text.size(), INT32_MAX);  // ICU counts in 32 bits
    icu::StringByteSink<std::string> sink(&result, static_cast<int32_t>(text.size()));
    normalizer->normalizeUTF8(0, icu::StringPiece(text.data(), static_cast<int32_t>(text.size())),
                              sink, nullptr, status);
  }
  check(U_SUCCESS(status), ErrorKind::data, "tokenizer: cannot normalise a text of {} bytes: {}",
        given.size(), u_errorName(status));
  return result;
}

std::string nfd(std::string_view text) {
  return unicode_form(&icu::Normalizer2::getNFDInstance, text);
}

void bert_rule(const BertNormalizerOptions& options, char32_t c, std::string& out) {
  if (options.clean_text) {
    if (c == 0 || c == 0xFFFD || is_control(c)) return;
    if (is_white_space(c)) c = ' ';
  }
  if (options.handle_chinese_chars && is_chinese(c)) {
    out += ' ';
    append_utf8(c, out);
    out += ' ';
  } else {
    append_utf8(c, out);
  }
}

/// The rules of NMT in SentencePiece: control characters vanish, what separates becomes a space.
void nmt_rule(char32_t c, std::string& out) {
  if ((c >= 0x1 && c <= 0x8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F ||
      c == 0x9F) {
    return;
  }
  const bool is_space = c == 0x9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 ||
                        (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                        c == 0xFEFF || c == 0xFFFD;
  append_utf8(is_space ? U' ' : c, out);
}

std::unique_ptr<Normalizer> read_sequence(const Json& json, const std::string& source) {
  std::vector<std::shared_ptr<const Normalizer>> parts;
  for (const Json& part : sequence_of(json, "normalizers", source)) {
    parts.push_back(read_normalizer(part, source));
  }
  const auto apply = [parts](std::string_view text, size_t most) {
    std::string result(text);
    for (const auto& part : parts) {
      if (part) result = part->apply(result, most);
      check_growth(result.size(), most);
    }
    return result;
  };
  return std::make_unique<Normalizer>(apply, [parts](std::string_view given) {
    std::string text(given);
    for (const auto& part : parts) {
      if (part && !part->keeps_start(text)) return false;
      if (part) text = (*part)(text);
    }
    return true;
  });
}

std::unique_ptr<Normalizer> read_bert(const Json& json, const std::string& source) {
  BertNormalizerOptions options;
  options.clean_text = bool_or(json, "clean_text", true, source);
  options.handle_chinese_chars = bool_or(json, "handle_chinese_chars", true, source);
  options.lowercase = bool_or(json, "lowercase", true, source);
  options.strip_accents = bool_or(json, "strip_accents", options.lowercase, source);
  return make_bert_normalizer(options);
}

std::unique_ptr<Normalizer> read_replace(const Json& json, const std::string& source) {
  const Pattern pattern = Pattern::read(json.at("pattern", source), source);
  const std::string content = json.get_string("content", source);
  return std::make_unique<Normalizer>(
      [pattern, content](std::string_view text, size_t most) {
        return pattern.replace(text, content, most);
      },
      [pattern, content](std::string_view text) {
        if (!content.empty()) return true;
        const auto found = pattern.find_all(text);
        return found.empty() || found[0].first > 0 || found[0].second == 0;
      });
}

std::unique_ptr<Normalizer> read_precompiled(const Json& json, const std::string& source) {
  const std::string where = source + ": precompiled_charsmap";
  return make_charsmap_normalizer(
      base64_bytes(json.get_string("precompiled_charsmap", source), where), where);
}

std::unique_ptr<Normalizer> read_simple(const std::string& type) {
  static const std::pair<const char*, Form> kForms[] = {
      {"NFC", &icu::Normalizer2::getNFCInstance},
      {"NFD", &icu::Normalizer2::getNFDInstance},
      {"NFKC", &icu::Normalizer2::getNFKCInstance},
      {"NFKD", &icu::Normalizer2::getNFKDInstance}};
  for (const auto& [name, form] : kForms) {
    if (type == name)
      return of([form = form](std::string_view t) { return unicode_form(form, t); });
  }
  if (type == "Lowercase") return of(lower_case);
  if (type == "Nmt") return of([](std::string_view t) { return each_character(t, nmt_rule); });
  if (type == "StripAccents") {
    return of([](std::string_view text) {
      return each_character(text, [](char32_t c, std::string& out) {
        if (!is_combining_mark(c)) append_utf8(c, out);
      });
    });
  }
  if (type == "ByteLevel") {
    return of([](std::string_view text) {
      std::string letters;
      append_byte_letters(text, letters);
      return letters;
    });
  }
  return nullptr;
}

}  // namespace

std::string Normalizer::operator()(std::string_view text) const {
  const size_t most = most_bytes(text.size());
  std::string result = apply(text, most);
  check_growth(result.size(), most);
  return result;
}

bool Normalizer::keeps_start(std::string_view text) const {
  if (keeps_start_) return keeps_start_(text);
  size_t end = 0;
  if (!text.empty()) next_code_point(text, end);
  return end == 0 || !(*this)(text.substr(0, end)).empty();
}

std::unique_ptr<Normalizer> make_bert_normalizer(const BertNormalizerOptions& options) {
  return of([options](std::string_view text) {
    std::string result =
        each_character(text, [&](char32_t c, std::string& out) { bert_rule(options, c, out); });
    if (options.strip_accents) {
      result = each_character(nfd(result), [](char32_t c, std::string& out) {
        if (!is_nonspacing_mark(c)) append_utf8(c, out);
      });
    }
    return options.lowercase ? lower_case(result) : result;
  });
}

std::unique_ptr<Normalizer> read_normalizer(const Json& json, const std::string& source) {
  if (json.is_null()) return nullptr;
  const std::string& type = component_type(json, source + ": normalizer");
  const std::string where = source + ": " + type;
  if (type == "Sequence") return read_sequence(json, where);
  if (type == "BertNormalizer") return read_bert(json, where);
  if (type == "Replace") return read_replace(json, where);
  if (type == "Precompiled") return read_precompiled(json, where);
  if (type == "Strip") {
    const bool left = bool_or(json, "strip_left", true, where);
    const bool right = bool_or(json, "strip_right", true, where);
    return of(
        [=](std::string_view text) {
          if (left) text.remove_prefix(leading_space(text));
          if (right) text.remove_suffix(trailing_space(text));
          return std::string(text);
        },
        [left](std::string_view text) { return !left || leading_space(text) == 0; });
  }
  if (type == "Prepend") {
    return of([prefix = json.get_string("prepend", where)](std::string_view text) {
      return text.empty() ? "" : prefix + std::string(text);
    });
  }
  if (auto simple = read_simple(type)) return simple;
  fail_component("normalizer", type,
                 "BertNormalizer, NFC, NFD, NFKC, NFKD, Lowercase, Strip, StripAccents, Replace, "
                 "Prepend, Precompiled, Nmt, ByteLevel and Sequence",
                 source);
}

}  // namespace heddle
