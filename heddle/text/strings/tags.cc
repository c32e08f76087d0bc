// One look at each character.
#include "heddle/text/strings/tags.h"

#include <algorithm>

namespace heddle {
namespace {

char small(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

}  // namespace

size_t end_of_tag(std::string_view text, size_t begin) {
  char quote = 0;
  for (size_t i = begin; i < text.size(); ++i) {
    if (quote != 0) {
      if (text[i] == quote) quote = 0;
    } else if (text[i] == '"' || text[i] == '\'') {
      quote = text[i];
    } else if (text[i] == '>') {
      return i + 1;
    } else if (text[i] == '<' && i > begin) {
      return text.npos;
    }
  }
  return text.npos;
}

std::string_view tag_name(std::string_view tag) {
  size_t begin = 1;
  if (begin < tag.size() && tag[begin] == '/') ++begin;
  size_t end = begin;
  while (end < tag.size() && !is_markup_space(tag[end]) && tag[end] != '>' && tag[end] != '/')
    ++end;
  return tag.substr(std::min(begin, tag.size()), end - begin);
}

bool is_same_tag_name(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, small, small);
}

std::optional<std::string_view> tag_attribute(std::string_view tag, std::string_view name) {
  const auto skip = [&](size_t at, auto&& is_skipped) {
    while (at < tag.size() && is_skipped(tag[at])) ++at;
    return at;
  };
  for (size_t at = 1 + tag_name(tag).size(); at < tag.size();) {
    const size_t begin =
        skip(at, [](char c) { return is_markup_space(c) || c == '/' || c == '='; });
    size_t end =
        skip(begin, [](char c) { return !is_markup_space(c) && c != '=' && c != '>' && c != '/'; });
    if (end == begin) break;
    const std::string_view found = tag.substr(begin, end - begin);
    std::string_view value;
    const size_t equals = skip(end, is_markup_space);
    if (equals < tag.size() && tag[equals] == '=') {
      size_t from = skip(equals + 1, is_markup_space);
      if (from < tag.size() && (tag[from] == '"' || tag[from] == '\'')) {
        const char quote = tag[from++];
        end = std::min(tag.find(quote, from), tag.size());
        value = tag.substr(from, end - from);
        ++end;
      } else {
        end = skip(from, [](char c) { return !is_markup_space(c) && c != '>'; });
        value = tag.substr(from, end - from);
      }
    }
    if (is_same_tag_name(found, name)) return value;
    at = end;
  }
  return {};
}

}  // namespace heddle
