// Against a search for each string at each byte.
#include "heddle/text/strings/longest_matches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace heddle {
namespace {

TEST(LongestMatches, are_those_of_a_search_at_each_byte) {
  std::mt19937 draw(7);
  const auto word = [&](size_t most) {
    std::string text(1 + draw() % most, 'a');
    for (char& c : text) c = static_cast<char>('a' + draw() % 2);
    return text;
  };
  int matches = 0;
  for (int round = 0; round < 300; ++round) {
    std::vector<std::string> strings;
    for (size_t i = draw() % 6; i > 0; --i) strings.push_back(word(6));
    const std::string text = word(60);
    const std::vector<size_t> found = longest_matches(text, strings);
    ASSERT_EQ(found.size(), text.size());
    for (size_t at = 0; at < text.size(); ++at) {
      size_t longest = 0;
      for (const std::string& one : strings) {
        if (text.compare(at, one.size(), one) == 0) longest = std::max(longest, one.size());
      }
      ASSERT_EQ(found[at], longest) << text << " at " << at;
      matches += longest > 0 ? 1 : 0;
    }
  }
  EXPECT_GT(matches, 1000);
}

TEST(LongestMatches, bytes_of_any_value_and_empty_strings_are_taken) {
  const std::vector<std::string> strings = {"", std::string("\0", 1), "\xff\xfe", "é"};
  EXPECT_EQ(longest_matches(std::string("\0\xff\xfeé", 5), strings),
            (std::vector<size_t>{1, 2, 0, 2, 0}));
  EXPECT_TRUE(longest_matches("", strings).empty());
  EXPECT_EQ(longest_matches("ab", {}), (std::vector<size_t>{0, 0}));
}

}  // namespace
}  // namespace heddle
