// Regular expressions as `onig`, the library of `tokenizers`, reads them, in the words of ICU.
#pragma once

#include <string>
#include <string_view>

namespace heddle {

/// A pattern for ICU that matches what `onig` does by this one: words, hexadecimal digits, `{n,m}+`
/// (a group repeated, to ICU possessive), `{n}?` (one that may lack), options inside a group, and
/// escapes that mean something else to ICU. Errors: data, with `source` in front, for what cannot
/// be said so: \K, \y, \Y, \g, and -- in brackets.
std::string icu_pattern(std::string_view onig, const std::string& source);

}  // namespace heddle
