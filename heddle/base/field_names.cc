// Keys between backquotes give way to names.
#include "heddle/base/field_names.h"

namespace heddle {
namespace {

std::string (*g_name)(std::string_view) = nullptr;

}  // namespace

std::string field_name(std::string_view key) {
  return g_name == nullptr ? std::string(key) : g_name(key);
}

void name_fields_by(std::string (*name)(std::string_view)) { g_name = name; }

std::string name_fields(std::string_view text) {
  std::string named;
  for (;;) {
    const size_t begin = text.find('`'), end = text.find('`', begin + 1);
    if (begin == text.npos || end == text.npos) return named.append(text);
    const std::string_view key = text.substr(begin + 1, end - begin - 1);
    const bool is_key = key.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == key.npos;
    named.append(text.substr(0, begin));
    named.append(is_key ? field_name(key) : text.substr(begin, end + 1 - begin));
    text.remove_prefix(end + 1);
  }
}

}  // namespace heddle
