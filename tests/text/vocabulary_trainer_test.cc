// Vocabularies of characters and of WordPiece: what is in them, and that they come back.
#include "heddle/text/training/tokenizer_trainer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

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

// What counting all neighbours anew before each joining gives, of words of a, b and c.
std::vector<std::string> tokens_by_counting(const std::vector<std::string>& words, size_t most) {
  std::vector<std::string> tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a",
                                     "##a",   "b",     "##b",   "c",     "##c"};
  std::vector<std::vector<size_t>> split;
  for (const std::string& word : words) {
    split.emplace_back();
    for (const char c : word) {
      split.back().push_back(5 + 2 * static_cast<size_t>(c - 'a') + !split.back().empty());
    }
  }
  while (tokens.size() < most) {
    std::map<std::pair<size_t, size_t>, int> counts;
    for (const auto& word : split) {
      for (size_t k = 0; k + 1 < word.size(); ++k) ++counts[{word[k], word[k + 1]}];
    }
    const auto best =
        std::ranges::max_element(counts, {}, [](const auto& counted) { return counted.second; });
    if (best == counts.end() || best->second < 2) return tokens;
    const auto [first, second] = best->first;
    for (auto& word : split) {
      for (size_t k = 0; k + 1 < word.size(); ++k) {
        if (word[k] != first || word[k + 1] != second) continue;
        word[k] = tokens.size();
        word.erase(word.begin() + static_cast<int64_t>(k) + 1);
      }
    }
    tokens.push_back(tokens[first] + tokens[second].substr(2));
  }
  return tokens;
}

TEST(WordPieces, tokens_are_those_that_counting_anew_before_each_of_them_gives) {
  std::mt19937 random(1);
  for (int times = 0; times < 20; ++times) {
    std::vector<std::string> words = {"aabbcc", "bab", "cac"};
    std::string text = "aabbcc bab cac";
    for (int i = 0; i < 100; ++i) {
      std::string& word = words.emplace_back();
      for (uint32_t letters = 1 + random() % 9; letters > 0; --letters) {
        word += static_cast<char>('a' + random() % 3);
      }
      text += " " + word;
    }
    const std::vector<std::string> texts = {text}, wanted = tokens_by_counting(words, 150);
    const Tokenizer t = train_word_pieces(texts, 150);
    ASSERT_EQ(t.vocab_size(), std::ssize(wanted));
    for (size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_EQ(t.token(static_cast<int32_t>(i)), wanted[i]) << text;
    }
  }
}

TEST(WordPieces, fewer_tokens_than_characters_are_refused) {
  const std::vector<std::string> texts = {"abc def"};
  expect_error(ErrorKind::data, {"8 tokens", "11", "vocab_size"},
               [&] { train_word_pieces(texts, 8); });
  EXPECT_EQ(train_word_pieces(texts, 1000).vocab_size(), 11);  // no two neighbours come twice
}

}  // namespace
}  // namespace heddle
