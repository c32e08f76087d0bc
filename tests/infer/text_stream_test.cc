// Text that grows: whole characters, the prompt's border, stop strings across borders of tokens.
#include "heddle/infer/decoding/text_stream.h"

#include <gtest/gtest.h>

#include "heddle/base/utf8.h"
#include "tests/infer/small_models.h"

namespace heddle::testing {
namespace {

using Ids = std::vector<int32_t>;

// Hands the tokens of the text over one by one; returns what take() gave each time.
std::vector<std::string> stream(TextStream& text, const Ids& tokens) {
  std::vector<std::string> parts;
  for (size_t n = 1; n <= tokens.size(); ++n) {
    const bool goes_on = text.read(std::span(tokens).first(n));
    parts.push_back(text.take());
    if (!goes_on) break;
  }
  parts.push_back(text.take_rest());
  return parts;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string all;
  for (const std::string& part : parts) all += part;
  return all;
}

const Tokenizer& tokenizer() { return shared_tokenizer(); }

// The tokenizer knows no such letters: each is several tokens of a byte.
constexpr const char* kText = "the old man € reads 𝄞 two\n books ñ";

TEST(TextStream, parts_are_whole_characters_and_make_the_whole_text) {
  const Ids tokens = tokenizer().encode(kText);
  TextStream text(tokenizer(), {});
  const auto parts = stream(text, tokens);
  size_t empty = 0;
  for (const std::string& part : parts) {
    EXPECT_FALSE(first_invalid_utf8(part)) << part;
    EXPECT_EQ(part.find("\xEF\xBF\xBD"), std::string::npos);
    empty += part.empty();
  }
  EXPECT_GE(empty, 5u);  // those that waited: 2 of the euro sign, 3 of the clef
  EXPECT_EQ(joined(parts), kText);
  EXPECT_EQ(text.text(), kText);
}

TEST(TextStream, prompt_and_continuation_make_the_whole_text_wherever_they_are_cut) {
  const Ids tokens = tokenizer().encode(kText);
  for (size_t cut = 0; cut <= tokens.size(); ++cut) {
    TextStream text(tokenizer(), std::span(tokens).first(cut));
    const std::string rest = joined(stream(text, Ids(tokens.begin() + cut, tokens.end())));
    const std::string whole = kText;
    EXPECT_TRUE(whole.ends_with(rest)) << cut;
    EXPECT_FALSE(first_invalid_utf8(rest)) << cut;
    const std::string before = tokenizer().decode(std::span(tokens).first(cut));
    EXPECT_EQ(before.substr(0, before.find("\xEF\xBF\xBD")) + rest, kText) << cut;
  }
}

// Long texts are not decoded again from their beginning.
TEST(TextStream, long_text_is_that_of_all_its_tokens) {
  std::string long_text;
  for (int i = 0; i < 40; ++i) long_text += std::string(kText) + " books ";
  const Ids tokens = tokenizer().encode(long_text);
  ASSERT_GT(tokens.size(), 600u);
  const std::string whole = tokenizer().decode(tokens);
  for (const size_t cut : {size_t{0}, size_t{7}}) {
    TextStream text(tokenizer(), std::span(tokens).first(cut), {"never there"});
    const std::string rest = joined(stream(text, Ids(tokens.begin() + cut, tokens.end())));
    EXPECT_EQ(rest, text.text());
    EXPECT_EQ(tokenizer().decode(std::span(tokens).first(cut)) + rest, whole) << cut;
  }
  // Across what is decoded no more.
  for (size_t n = 60; n < 90; ++n) {
    const std::string before = tokenizer().decode(std::span(tokens).first(n));
    const std::string stop = whole.substr(before.size() - 3, 6);
    TextStream text(tokenizer(), {}, {stop});
    stream(text, tokens);
    EXPECT_EQ(text.text(), whole.substr(0, whole.find(stop))) << n;
  }
}

TEST(TextStream, unfinished_character_at_the_end_is_given_at_last) {
  Ids tokens = tokenizer().encode("a €");
  tokens.pop_back();
  TextStream text(tokenizer(), {});
  const auto parts = stream(text, tokens);
  EXPECT_TRUE(parts.back().starts_with("\xEF\xBF\xBD"));
  EXPECT_TRUE(joined(parts).starts_with("a "));
}

TEST(TextStream, stop_string_ends_the_text_before_it_across_tokens) {
  const std::string whole = "the old man reads two books";
  const Ids tokens = tokenizer().encode(whole);
  for (size_t at = 1; at + 5 < whole.size(); ++at) {
    const std::string stop = whole.substr(at, 5);
    TextStream text(tokenizer(), {}, {"nothing like it", stop});
    const auto parts = stream(text, tokens);
    EXPECT_FALSE(text.read(tokens)) << stop;
    EXPECT_EQ(text.text(), whole.substr(0, whole.find(stop)));
    EXPECT_EQ(joined(parts), text.text()) << stop;  // nothing of it was given away before
  }
}

TEST(TextStream, beginning_of_a_stop_string_that_does_not_come_is_given_late) {
  const Ids tokens = tokenizer().encode("the old man");
  TextStream text(tokenizer(), {}, {"old woman"});
  EXPECT_EQ(joined(stream(text, tokens)), "the old man");
  EXPECT_TRUE(text.read(tokens));
}

}  // namespace
}  // namespace heddle::testing
