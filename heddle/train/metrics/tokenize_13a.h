// Words and characters as sacreBLEU sees them: the 13a tokenizer, Python's white space and lower().
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::train {

/// The words of a line after NIST's mteval-v13a.pl (the language-dependent part for Western
/// languages): entities &quot; &amp; &lt; &gt; decoded, ASCII punctuation split off, periods and
/// commas kept between digits, a dash split off after a digit. `line` is UTF-8.
/// Source: sacreBLEU's tokenizer "13a", which follows mteval-v13a.pl.
std::vector<std::string> tokenize_13a(std::string_view line);

/// What white space separates, as by Python's str.split(): Unicode white space and U+001C to
/// U+001F.
std::vector<std::string_view> split_whitespace(std::string_view text);

/// The code points of a text without white space. A byte that is not UTF-8 gives 0x110000 + byte.
std::vector<uint32_t> characters_without_whitespace(std::string_view text);

/// Lower case as Python's str.lower(): full mappings ('İ' becomes "i" with a dot above) and the
/// final sigma, of no particular language. Bytes that are not UTF-8 become U+FFFD.
/// Errors: data for a text of 2 GiB or more.
std::string lower_case(std::string_view text);

}  // namespace heddle::train
