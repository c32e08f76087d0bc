// A vocabulary of plain words: what text becomes, and what is no word.
#include "heddle/text/training/tokenizer_trainer.h"

#include <gtest/gtest.h>

#include "tests/base/temporary.h"

namespace heddle {
namespace {

const std::vector<std::string> kWords = {"a", "am", "i", "thanks", "student", "étudiant"};

TEST(WordList, words_have_the_ids_of_their_places_behind_the_special_ones) {
  const Tokenizer t = word_list_tokenizer(kWords);
  EXPECT_EQ(t.vocab_size(), 10);
  EXPECT_EQ(t.pad_id(), 0);
  EXPECT_EQ(t.unk_id(), 1);
  EXPECT_EQ(t.bos_id(), 2);
  EXPECT_EQ(t.eos_id(), 3);
  EXPECT_EQ(t.encode("i am a student"), (std::vector<int32_t>{6, 5, 4, 8}));
  EXPECT_EQ(t.decode(t.encode("i am a student")), "i am a student");
  EXPECT_EQ(t.encode("  étudiant   i "), (std::vector<int32_t>{9, 6}));
  EXPECT_EQ(t.encode("students am"), (std::vector<int32_t>{1, 5}));
  EXPECT_EQ(t.token(8), "\xE2\x96\x81student");
}

TEST(WordList, is_a_model_file_like_any_other_and_the_same_bytes_each_time) {
  const TemporaryFolder folder;
  const Tokenizer t = word_list_tokenizer(kWords);
  EXPECT_EQ(word_list_tokenizer(kWords).model_bytes(), t.model_bytes());
  const std::string path = folder.path() + "/words.model";
  t.save(path);
  const Tokenizer again = Tokenizer::load(path);
  EXPECT_EQ(again.fingerprint(), t.fingerprint());
  EXPECT_EQ(again.encode("thanks"), (std::vector<int32_t>{7}));
}

TEST(WordList, what_is_no_list_of_words_is_a_data_error) {
  const auto fails = [](const std::vector<std::string>& words, const char* says) {
    expect_error(ErrorKind::data, {says}, [&] { word_list_tokenizer(words); });
  };
  fails({}, "empty");
  fails({"a", ""}, "word 2");
  fails({"a", "two words"}, "'two words'");
  fails({"a", "b", "a"}, "'a' comes twice");
  fails({"</s>"}, "special");
  fails({"caf\xE9"}, "not UTF-8");
}

}  // namespace
}  // namespace heddle
