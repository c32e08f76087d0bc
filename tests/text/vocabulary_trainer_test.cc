// Vocabularies of characters and of WordPiece: what is in them, and that they come back.
#include "heddle/text/training/tokenizer_trainer.h"

#include <gtest/gtest.h>

#include "heddle/base/json/json.h"
#include "tests/base/temporary.h"

namespace heddle {
namespace {

TEST(CharacterTokenizer, ids_are_in_the_order_of_code_points_and_come_back) {
  const std::vector<std::string> texts = {"ba\n", "€ä b"};
  const Tokenizer t = character_tokenizer(texts);
  EXPECT_EQ(t.vocab_size(), 6);
  EXPECT_EQ(t.encode("\n abä€"), (std::vector<int32_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(t.decode(t.encode("ä b\n\n  a")), "ä b\n\n  a");
}

TEST(CharacterTokenizer, files_are_read_back) {
  const TemporaryFolder folder;
  const std::vector<std::string> texts = {"hello \"ä\" \x01"};
  character_tokenizer(texts).save_folder(folder.path());
  const Tokenizer t = Tokenizer::load(folder.path());
  EXPECT_EQ(t.decode(t.encode(texts[0])), texts[0]);
  expect_error(ErrorKind::data, {"no character"}, [] { character_tokenizer({}); });
}

TEST(WordPieces, most_frequent_neighbours_are_joined_first) {
  // "low" 5 times, "lower" 2, "newest" 6, "widest" 3: Sennrich et al. 2016, figure 1.
  std::string text;
  const auto add = [&](const char* word, int n) {
    for (int i = 0; i < n; ++i) text += std::string(word) + " ";
  };
  add("low", 5), add("Lower", 2), add("newest", 6), add("widést", 3);
  const std::vector<std::string> texts = {text};
  const Tokenizer t = train_word_pieces(texts, 5 + 11 + 4);
  // 5 special ones, the characters l n w ##d ##e ##i ##o ##r ##s ##t ##w, then 9 times each "es",
  // "est", and 7 times "lo", "low".
  ASSERT_EQ(t.vocab_size(), 20);
  EXPECT_EQ(t.token(16), "##es");
  EXPECT_EQ(t.token(17), "##est");
  EXPECT_EQ(t.token(18), "lo");
  EXPECT_EQ(t.token(19), "low");
  EXPECT_EQ(t.mask_id(), 4);
  EXPECT_EQ(t.cls_id(), 2);
  const std::vector<int32_t> ids = t.encode("LOWEST");
  EXPECT_EQ(t.token(ids.at(0)), "low");
  EXPECT_EQ(t.token(ids.at(1)), "##est");
}

TEST(WordPieces, fewer_tokens_than_characters_are_refused) {
  const std::vector<std::string> texts = {"abc def"};
  expect_error(ErrorKind::data, {"8 tokens", "11", "vocab_size"},
               [&] { train_word_pieces(texts, 8); });
  EXPECT_EQ(train_word_pieces(texts, 1000).vocab_size(), 11);  // no two neighbours come twice
}

}  // namespace
}  // namespace heddle
