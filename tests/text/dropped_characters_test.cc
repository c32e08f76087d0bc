// What tokenizers without a token for the unknown drop, and that the others drop nothing.
#include "heddle/text/dropped_characters.h"

#include <gtest/gtest.h>

#include "heddle/text/training/tokenizer_trainer.h"
#include "tests/base/temporary.h"
#include "tests/text/small_tokenizers.h"

namespace heddle {
namespace {

// Byte pair encoding without merges, of a tokenizer.json with these further parts.
Tokenizer letters(const TemporaryFolder& folder, const std::string& vocab,
                  const std::string& parts) {
  return Tokenizer::load(folder.write(
      "tokenizer.json", R"({"model": {"type": "BPE", "vocab": )" + vocab + R"(, "merges": []})" +
                            (parts.empty() ? "" : ", " + parts) + "}"));
}

TEST(DroppedCharacters, characters_without_a_token_are_counted_named_and_taken_out) {
  const std::vector<std::string> texts = {"Zrich bern\n"};
  const Tokenizer t = character_tokenizer(texts);
  DroppedCharacters dropped(t);
  const std::string text = "Zürich 北京\tbern\u00A0ü\n";
  const std::string rest = dropped.without(text);
  EXPECT_EQ(rest, "Zrich bern\n");
  EXPECT_EQ(t.encode(rest), t.encode(text));
  EXPECT_TRUE(dropped.is_rest_whole(text, rest));
  EXPECT_EQ(dropped.count(), 6);
  EXPECT_EQ(dropped.counted_characters(), "6 characters");
  EXPECT_EQ(dropped.examples(), "'ü', '北', '京', U+0009, U+00A0");
  EXPECT_EQ(dropped.without("0123456789"), "");
  EXPECT_EQ(dropped.examples(),
            "'ü', '北', '京', U+0009, U+00A0, '0', '1', '2', .. (15 different ones)");
}

TEST(DroppedCharacters, tokens_for_bytes_or_for_the_unknown_leave_nothing_out) {
  const std::vector<std::string> texts = {"one ox"};
  for (const Tokenizer& t : {testing::small_tokenizer(TokenizerType::bpe),
                             testing::small_tokenizer(TokenizerType::unigram, "identity", false),
                             train_word_pieces(texts, 30)}) {
    DroppedCharacters dropped(t);
    EXPECT_EQ(dropped.without("Zürich \t北京"), "Zürich \t北京") << t.kind();
    EXPECT_EQ(dropped.count(), 0) << t.kind();
  }
}

TEST(DroppedCharacters, space_before_a_text_is_no_token_of_a_character) {
  const TemporaryFolder folder;
  const Tokenizer t = letters(folder, R"({"▁": 0, "a": 1})",
                              R"("pre_tokenizer": {"type": "Metaspace", "replacement": "▁",
                                                   "prepend_scheme": "always"},
                                 "decoder": {"type": "Metaspace", "replacement": "▁",
                                             "prepend_scheme": "always"})");
  DroppedCharacters dropped(t);
  const std::string rest = dropped.without("a üa");
  EXPECT_EQ(rest, "a a");
  EXPECT_TRUE(dropped.is_rest_whole("a üa", rest));
  EXPECT_EQ(dropped.count(), 1);
}

TEST(DroppedCharacters, tokenizers_that_refuse_the_unknown_drop_nothing) {
  const TemporaryFolder folder;
  const Tokenizer t = Tokenizer::load(folder.write(
      "tokenizer.json", R"({"model": {"type": "WordLevel", "vocab": {"a": 0, "b": 1}}})"));
  DroppedCharacters dropped(t);
  EXPECT_EQ(dropped.without("ü"), "ü");
  EXPECT_EQ(dropped.count(), 0);
}

// é is C3 A9, ü is C3 BC; of the letters of bytes that stand for them only that of C3 is there.
TEST(DroppedCharacters, tokens_that_are_no_part_of_the_text_are_told_from_those_that_are) {
  const TemporaryFolder folder;
  const Tokenizer bytes =
      letters(folder, R"({"a": 0, "Ã": 1, "¼": 2})",
              R"("pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
                 "decoder": {"type": "ByteLevel"})");
  DroppedCharacters of_bytes(bytes);
  EXPECT_EQ(of_bytes.without("aüx"), "aü");
  EXPECT_TRUE(of_bytes.is_rest_whole("aüx", "aü"));
  EXPECT_EQ(of_bytes.without("aéx"), "aé");
  EXPECT_FALSE(of_bytes.is_rest_whole("aéx", "aé"));
  const Tokenizer lower = letters(folder, R"({"a": 0, "b": 1})",
                                  R"("normalizer": {"type": "Lowercase"},
                                     "decoder": {"type": "Fuse"})");
  DroppedCharacters of_lower(lower);
  EXPECT_EQ(of_lower.without("aBX"), "aB");
  EXPECT_FALSE(of_lower.is_rest_whole("aBX", "aB"));
}

}  // namespace
}  // namespace heddle
