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

TEST(Regex, an_interval_and_a_plus_are_a_group_that_is_repeated) {
  const Case all[] = {
      {R"(\p{N}{1,3}+)", "1234567a1", "|a|"}, {R"(a{1,2}+a)", "aaaaab", "|b"},
      {R"((ab){2}+)", "abababab ab", "| ab"}, {R"((?:a|b){1,2}+c)", "ababc c", "| c"},
      {R"([ab]{2}+)", "abababa", "|a"},       {R"([^\r\n\p{L}]?é{1,2}+)", "éééa", "|a"},
      {R"(\u0061{1,2}+)", "aaaaa", "|"},      {R"(\{1,2}+)", "{1,2}} {1,2", "| {1,2"},
      {R"(a{1,2}+?)", "aaaaa", "|||"},        {R"(a{2}+?)", "aaaaa", "||a"},
      {R"(a{1,2}++)", "aaaaa", "|"},          {R"(a{,2}+b)", "aaaab b", "| |"},
      {R"(a{,2}b)", "aaab b", "a| |"},        {R"(xa{2}?)", "xaaaxa", "|a|a"},
      {R"(a{2}??b)", "aab b", "| |"},         {R"(a{2,2}?b)", "aab b ab", "| b ab"},
      {R"(a{2,3}?)", "aaaaa", "||a"},         {R"(a{x})", "a{x}", "|"},
      {R"(a{ 2})", "aa a{ 2}", "aa |"},
  };
  for (const Case& one : all) EXPECT_EQ(replaced(one.regex, one.text), one.expected) << one.regex;
}

TEST(Regex, escapes_and_classes_are_those_of_onig) {
  const Case all[] = {
      {R"(\h{2,4}+)", "abcdefg１", "|g１"},
      {R"(\H)", "ab g1", "ab||1"},
      {R"([\h\s]+)", "ab 1g", "|g"},
      {R"([^\h\s]+)", "ab 1gz", "ab 1|"},
      {R"([\Hb]+)", "ab 1gz", "a|1|"},
      {R"([\V\v]|\v)", "vV\x0b\n", "v||\n"},
      {R"(\V|\Q)", "aQVE", "a||E"},
      {R"(\Q.\E)", "QaE.", "|."},
      {R"([\N])", "abNc", "ab|c"},
      {R"([\y\K\Z])", "yKZa", "|||a"},
      {R"(\N+)", "ab\nc", "|\n|"},
      {R"(\O+)", "ab\nc", "|"},
      {R"(a\Z)", "aa\n", "a|\n"},
      {R"(a\Z)", "aa\r\n", "aa\r\n"},
      {R"(a\Z)", "aa\u2028", "aa\u2028"},
      {R"([[:punct:]a]+)", "a=b", "|b"},
      {R"([[:punct:]]+)", ".=_-$+<>^`~!|日", "|日"},
      {R"([^[:punct:]]+)", "a=b", "|=|"},
      {R"(\p{Punct})", "a=b.", "a=b|"},
      {R"(\p{posixpunct})", "a=b.", "a|b|"},
      {R"([[:xdigit:]x]+)", "0xFg１", "|g１"},
      {R"([[:^xdigit:]]+)", "0xFg１", "0|F|"},
      {R"(\p{XDigit}+)", "aF9１Ａ", "|１Ａ"},
      {R"(\P{xdigit}+)", "aF9１Ａ", "aF9|"},
  };
  for (const Case& one : all) EXPECT_EQ(replaced(one.regex, one.text), one.expected) << one.regex;
}

TEST(Regex, options_are_those_of_onig) {
  const Case all[] = {
      {R"((?m).)", "a\n", "||"},
      {R"((?-m).)", "a\n", "|\n"},
      {R"((?m)a.b$)", "a\nb\nc", "|\nc"},
      {R"((?im)A.B)", "a\nb", "|"},
      {R"((?m-i)a.)", "a\nA\n", "|A\n"},
      {R"((?i)\p{Lu}|b)", "aABb", "a|||"},
      {R"((?i)[\p{Lu}])", "aB9", "||9"},
      {R"((?i:\p{Lu})\p{Ll})", "AAab aB", "A|b aB"},
      {R"((?i)\P{Lu}+)", "aBc9", "|B|"},
      {R"(a(?i)b|c)", "c ac aB b", "c | | b"},
      {R"((a(?i)b|c)d)", "cd acd aBd", "cd | |"},
      {R"(a(?i)b|c(?-i)d|e)", "acd aCd aCD aCE ace", "| | aCD aCE |"},
      {R"((?#[)a)", "ba", "b|"},
  };
  for (const Case& one : all) EXPECT_EQ(replaced(one.regex, one.text), one.expected) << one.regex;
}

TEST(Regex, what_icu_cannot_say_is_refused_by_name) {
  const std::pair<const char*, const char*> all[] = {{R"(a\Kb)", "\\K"},
                                                     {R"(\y)", "\\y"},
                                                     {R"(\Y.)", "\\Y"},
                                                     {R"((a)\g<1>)", "\\g"},
                                                     {R"([+--])", "-- in brackets"},
                                                     {R"([\p{L}--[a-z]])", "-- in brackets"}};
  for (const auto& [regex, named] : all) {
    expect_error(ErrorKind::data, {regex, named}, [&, regex = regex] { replaced(regex, "a"); });
  }
  EXPECT_EQ(replaced(R"([a\-\-b]+)", "a-b"), "|");
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
