// Regular expressions: matches as `onig` finds them, and texts on which they would never end.
#include "heddle/text/strings/pattern.h"

#include <gtest/gtest.h>

#include "heddle/text/strings/strings.h"
#include "tests/base/temporary.h"

namespace heddle {
namespace {

std::string replaced(const std::string& regex, const std::string& text) {
  Json json = Json::object();
  json["Regex"] = regex;
  return Pattern::read(json, "x").replace(text, "|", most_bytes(text.size()));
}

struct Case {
  const char *regex, *text, *expected;
};

// The texts are those of tokenizers 0.23: normalizers.Replace(Regex(regex), "|").
TEST(Regex, small_figures_are_of_words_but_not_inside_brackets) {
  const Case all[] = {
      {R"([\w]+)", "a²b", "|²|"},
      {R"(\w+)", "a²b", "|"},
      {R"([^\w\s]+)", "a²¼ .b", "a| |b"},
      {R"([\W])", "a² ", "a||"},
      {R"(\p{Word}+)", "a½b", "|"},
      {R"([\p{Word}x]+)", "a½b", "|½|"},
      {R"(\P{Word}+)", "a½ b", "a½|b"},
      {R"(\p{^Word})", "a½ b", "a½|b"},
      {R"([[:word:]]+)", "a½b", "|½|"},
      {R"([[:^word:]]+)", "a½ b", "a|b"},
      {R"([a[bc]\w]+)", "²ab²", "²|²"},
      {R"([\w&&[^a]])", "abc²", "a||²"},
      {R"(\d+|\w)", "²3a", "|||"},
      {R"(\s+(?!\S)|\s+)", "a  ² b ", "a||²|b|"},
      {R"( ?[^(\s|[.,!?…。，、।۔،])]+)", "Hi ². a, b", "||.|,|"},
  };
  for (const Case& one : all) EXPECT_EQ(replaced(one.regex, one.text), one.expected) << one.regex;
}

TEST(Regex, brackets_and_boundaries_are_those_of_onig) {
  const Case all[] = {
      {R"(\b)", "a² b", "|a²| |b|"},
      {R"(\B)", "a² é", "a|² é"},
      {R"(\bx\b)", "x ²x x²", "| ²x x²"},
      {R"([\b])",
       "a\x08"
       "b",
       "a|b"},
      {R"([]a]+)", "a]b", "|b"},
      {R"([^]a]+)", "]b²a", "]|a"},
      {R"(\[\w)", "[²", "|"},
      {R"([\]\w]+)", "]²a", "|²|"},
  };
  for (const Case& one : all) EXPECT_EQ(replaced(one.regex, one.text), one.expected) << one.regex;
}

TEST(Regex, no_match_is_empty_where_the_one_before_it_ends) {
  const Case all[] = {{"a*", "ma", "|m|"},
                      {"a*", "aab aa", "|b| |"},
                      {"x*", "éé", "|é|é|"},
                      {"", "ab", "|a|b|"},
                      {"|a", "aa", "|a|a|"}};
  for (const Case& one : all) EXPECT_EQ(replaced(one.regex, one.text), one.expected) << one.regex;
  EXPECT_EQ(replaced("a*", ""), "|");
}

TEST(Regex, steps_are_bounded_for_all_matches_together) {
  // Each of the 880 matches takes all steps that one match is given.
  expect_error(ErrorKind::data, {"(x+x+)+y|x", "880 bytes"},
               [] { replaced("(x+x+)+y|x", std::string(880, 'x')); });
  // Eight thousand times up to eight thousand steps are no reason to refuse a text.
  const std::string spaces(8'000, ' ');
  EXPECT_EQ(replaced(" +$", spaces + "a"), spaces + "a");
  EXPECT_EQ(replaced("a", std::string(2'000'000, 'a')), std::string(2'000'000, '|'));
}

}  // namespace
}  // namespace heddle
