// Normalizers: what they do to texts that are made to take long, or to fill memory.
#include "heddle/text/pipeline/pipeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "heddle/text/strings/strings.h"
#include "tests/base/temporary.h"

namespace heddle {
namespace {

std::string repeat(const std::string& text, size_t times) {
  std::string result;
  for (size_t i = 0; i < times; ++i) result += text;
  return result;
}

std::string normalized(const std::string& json, const std::string& text) {
  return (*read_normalizer(Json::parse(json), "x"))(text);
}

// Classes of The Unicode Standard 15.0, UnicodeData.txt.
struct Mark {
  std::string text;
  std::vector<std::pair<int, std::string>> parts;  // of its decomposition, with their classes
};

TEST(Normalizer, long_runs_of_marks_are_ordered_by_class_and_else_as_they_stand) {
  const std::vector<Mark> marks = {{"\u0315", {{232, "\u0315"}}},
                                   {"\u0316", {{220, "\u0316"}}},
                                   {"\u0327", {{202, "\u0327"}}},
                                   {"\u0341", {{230, "\u0301"}}},
                                   {"\u0344", {{230, "\u0308"}, {230, "\u0301"}}},
                                   {"\u0F73", {{129, "\u0F71"}, {130, "\u0F72"}}}};
  std::mt19937_64 random(3);
  for (int round = 0; round < 50; ++round) {
    std::string text = "x\u00E0";  // U+00E0 is a and U+0300 of class 230
    std::vector<std::pair<int, std::string>> parts = {{230, "\u0300"}};
    for (uint64_t n = 20 + random() % 60; n > 0; --n) {
      const Mark& mark = marks[random() % marks.size()];
      text += mark.text;
      parts.insert(parts.end(), mark.parts.begin(), mark.parts.end());
    }
    std::ranges::stable_sort(parts, {}, &std::pair<int, std::string>::first);
    std::string expected = "xa";
    for (const auto& [order, part] : parts) expected += part;
    EXPECT_EQ(normalized(R"({"type": "NFD"})", text + "b\u0316"), expected + "b\u0316");
    EXPECT_EQ(normalized(R"({"type": "NFKD"})", text), expected);
    const std::string composed = normalized(R"({"type": "NFC"})", text);
    EXPECT_EQ(composed, normalized(R"({"type": "NFC"})", expected));
    EXPECT_EQ(normalized(R"({"type": "NFD"})", composed), expected);
  }
}

TEST(Normalizer, a_million_marks_in_the_wrong_order_are_put_right) {
  constexpr size_t kMany = 500'000;
  const std::string late = repeat("\u0315", kMany), early = repeat("\u0316", kMany);
  EXPECT_TRUE(normalized(R"({"type": "NFD"})", "a" + late + early) == "a" + early + late);
  EXPECT_TRUE(normalized(R"({"type": "NFKC"})", "a" + late + early) == "a" + early + late);
  const auto bert = make_bert_normalizer({});
  EXPECT_EQ((*bert)("A" + late + early), "a");
  // Each is two marks, the second of the higher class.
  const std::string pairs = repeat("\u0F73", kMany);
  EXPECT_TRUE(normalized(R"({"type": "NFD"})", pairs) ==
              repeat("\u0F71", kMany) + repeat("\u0F72", kMany));
}

// As tokenizers 0.23 has it: of Unicode 8.0, of whose marks and signs some have changed since.
TEST(Characters, are_what_they_were_in_the_unicode_of_tokenizers) {
  const auto bert = make_bert_normalizer({});
  EXPECT_EQ((*bert)("\u1885\u1886\uA9BD\U000111C9"), "\u1885\u1886\uA9BD\U000111C9");
  EXPECT_EQ((*bert)("a\u1734\u0301"), "a");
  EXPECT_EQ(normalized(R"({"type": "StripAccents"})", "\u1885\u1CF2\u1CF3"), "");
  EXPECT_EQ(normalized(R"({"type": "StripAccents"})", "\U000111C9"), "\U000111C9");
  EXPECT_TRUE(is_punctuation(0x166D));
  EXPECT_TRUE(is_punctuation(0x111C9));
}

TEST(UnusedCharacter, is_found_in_one_pass_whatever_the_text_holds) {
  const std::string first = unused_character("", {});
  EXPECT_EQ(first.size(), 4u);
  // All but one of the 65,534 stand at the end of a long text.
  std::string all;
  for (char32_t c = 0x100000; c <= 0x10FFFD; ++c) {
    if (c != 0x10ABCD) append_utf8(c, all);
  }
  std::string one;
  append_utf8(0x10ABCD, one);
  const std::string text = std::string(32 << 20, 'a') + all;
  EXPECT_EQ(unused_character(text, {}), one);
  EXPECT_EQ(unused_character(text, std::vector<char32_t>{0x10ABCD}), "");
  EXPECT_EQ(unused_character(first, std::vector<char32_t>{0x100001, 0x41}), "\U00100002");
}

}  // namespace
}  // namespace heddle
