// Where strings of a list stand in a text.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

/// For each byte of the text the length of the longest of the strings that begins there; 0 for
/// none. Takes time in proportion to the bytes of text and strings together, whatever they are.
/// Source: Aho and Corasick 1975, here from the end of the text, so that what ends is what begins.
std::vector<size_t> longest_matches(std::string_view text, std::span<const std::string> strings);

}  // namespace heddle
