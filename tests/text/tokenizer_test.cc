// Encoding and decoding: exactness on hostile texts, special ids, errors, threads.
#include "heddle/text/tokenizer.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <random>
#include <thread>

#include "heddle/base/error.h"
#include "tests/base/temporary.h"
#include "tests/text/small_tokenizers.h"

namespace heddle {
namespace {

using namespace std::string_literals;
using testing::small_corpus;
using testing::small_tokenizer;

ErrorKind kind_of(const std::function<void()>& f, std::string* message = nullptr) {
  try {
    f();
  } catch (const Error& e) {
    if (message) *message = e.what();
    return e.kind();
  }
  ADD_FAILURE() << "no error";
  return ErrorKind::internal;
}

class ExactTokenizer : public ::testing::TestWithParam<TokenizerType> {
 protected:
  Tokenizer tokenizer_ = small_tokenizer(GetParam());

  void expect_exact(const std::string& text) {
    ASSERT_EQ(tokenizer_.decode(tokenizer_.encode(text)), text);
  }
};

TEST_P(ExactTokenizer, round_trip_of_hostile_text_is_exact) {
  for (const std::string& text : {""s,
                                  " "s,
                                  "   "s,
                                  " a"s,
                                  "a "s,
                                  "  two  spaces  "s,
                                  "\t\ttab\t"s,
                                  "\r"s,
                                  "line\nbreak\n"s,
                                  "\0"s,
                                  "a\0b\0"s,
                                  "\x01\x02\x1F\x7F"s,
                                  "\u0085\u00A0\u2028\u3000"s,
                                  "▁"s,
                                  "▁▁ ▁"s,
                                  " ▁a"s,
                                  "a▁b"s,
                                  "▅"s,
                                  "<s>"s,
                                  "</s> <pad> <unk>"s,
                                  "<0x41><0xE2>"s,
                                  "\uFFFD"s,
                                  "\uFEFF bom"s,
                                  "\uFFFE\uFFFF"s,
                                  "\U0010FFFF\U0010FFFD▁"s,
                                  "e\u0301 ﬁ ① ½"s,
                                  "Straße İı ẞ"s,
                                  "日本語テキスト"s,
                                  "👩‍👩‍👧‍👦 \u202Ertl\u202C"s,
                                  "the old man reads two books!"s,
                                  std::string(5000, ' '),
                                  std::string(5000, 'x'),
                                  "the"s + std::string(300, '\0') + "▁"}) {
    expect_exact(text);
  }
}

TEST_P(ExactTokenizer, round_trip_of_random_text_is_exact) {
  std::mt19937 random(7);
  const std::vector<std::string> atoms = {" ",          "▁",  "a",  "the",    "ß", "\0"s,
                                          "\t",         "\n", "€",  "😀",      "<", "s>",
                                          "\U0010FFFD", "▅",  "日", "old man"};
  for (int i = 0; i < 3000; ++i) {
    std::string text;
    for (auto n = random() % 12; n > 0; --n) text += atoms[random() % atoms.size()];
    expect_exact(text);
  }
}

TEST_P(ExactTokenizer, special_ids_are_0_to_3_and_invisible) {
  EXPECT_EQ(tokenizer_.pad_id(), 0);
  EXPECT_EQ(tokenizer_.unk_id(), 1);
  EXPECT_EQ(tokenizer_.bos_id(), 2);
  EXPECT_EQ(tokenizer_.eos_id(), 3);
  EXPECT_EQ(tokenizer_.vocab_size(), 312);
  EXPECT_EQ(tokenizer_.token(0), "<pad>");
  EXPECT_EQ(tokenizer_.token(3), "</s>");
  EXPECT_EQ(tokenizer_.token_id("<0x00>"), 4);
  std::vector<int32_t> ids = tokenizer_.encode("the old man");
  for (const int32_t id : ids) EXPECT_GT(id, 3);
  ids.insert(ids.begin(), 2);
  ids.insert(ids.begin() + 2, 0);
  ids.push_back(3);
  EXPECT_EQ(tokenizer_.decode(ids), "the old man");
}

TEST_P(ExactTokenizer, tokens_joined_are_the_text_with_space_signs) {
  std::string joined;
  for (const int32_t id : tokenizer_.encode("der alte Mann")) joined += tokenizer_.token(id);
  EXPECT_EQ(joined, "▁der▁alte▁Mann");
}

TEST_P(ExactTokenizer, text_seen_in_training_is_shorter_than_its_characters) {
  EXPECT_LT(tokenizer_.encode("the old man reads").size(), 17u);
}

TEST_P(ExactTokenizer, threads_get_the_same_ids) {
  const std::vector<std::string> lines = small_corpus();
  std::vector<std::vector<int32_t>> expected;
  for (const auto& line : lines) expected.push_back(tokenizer_.encode(line));
  std::vector<std::jthread> threads;
  std::atomic<int> different = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (size_t i = 0; i < lines.size(); ++i) {
        different += tokenizer_.encode(lines[i]) != expected[i];
        different += tokenizer_.decode(expected[i]) != lines[i];
      }
    });
  }
  threads.clear();
  EXPECT_EQ(different, 0);
}

TEST_P(ExactTokenizer, text_that_is_not_utf8_is_a_data_error) {
  std::string message;
  EXPECT_EQ(kind_of([&] { tokenizer_.encode("ab\xFFz"); }, &message), ErrorKind::data);
  EXPECT_NE(message.find("0xff at offset 2"), message.npos) << message;
}

TEST_P(ExactTokenizer, ids_beyond_the_vocabulary_add_nothing_and_negative_ones_are_data_errors) {
  for (const int32_t id : {312, INT32_MAX}) {
    EXPECT_EQ(tokenizer_.decode(std::vector<int32_t>{5, id}),
              tokenizer_.decode(std::vector<int32_t>{5}));
    EXPECT_EQ(tokenizer_.token(id), "");
  }
  for (const int32_t id : {-1, INT32_MIN}) {
    EXPECT_EQ(kind_of([&] { tokenizer_.decode(std::vector<int32_t>{5, id}); }), ErrorKind::data);
    EXPECT_EQ(kind_of([&] { tokenizer_.token(id); }), ErrorKind::data);
  }
}

TEST_P(ExactTokenizer, bytes_that_form_no_character_decode_to_the_replacement_character) {
  const std::vector<int32_t> ids = {tokenizer_.token_id("<0xE2>"), tokenizer_.token_id("<0x96>")};
  EXPECT_EQ(tokenizer_.decode(ids), "\uFFFD\uFFFD");
}

TEST_P(ExactTokenizer, saved_model_loads_with_the_same_bytes_and_fingerprint) {
  const TemporaryFolder folder;
  tokenizer_.save(folder / "saved.model");
  const Tokenizer loaded = Tokenizer::load(folder / "saved.model");
  EXPECT_EQ(loaded.model_bytes(), tokenizer_.model_bytes());
  EXPECT_EQ(loaded.fingerprint(), tokenizer_.fingerprint());
  EXPECT_EQ(loaded.encode("my sister"), tokenizer_.encode("my sister"));
}

INSTANTIATE_TEST_SUITE_P(Types, ExactTokenizer,
                         ::testing::Values(TokenizerType::bpe, TokenizerType::unigram),
                         [](const auto& suite) {
                           return suite.param == TokenizerType::bpe ? "bpe" : "unigram";
                         });

TEST(Tokenizer, without_byte_fallback_an_unknown_character_becomes_unk) {
  const Tokenizer tokenizer = small_tokenizer(TokenizerType::bpe, "identity", false);
  const std::vector<int32_t> ids = tokenizer.encode("日");
  EXPECT_EQ(ids.back(), tokenizer.unk_id());
  EXPECT_EQ(tokenizer.decode(ids), " ⁇ ");
}

TEST(Tokenizer, normalisation_joins_spaces_and_composes) {
  const Tokenizer tokenizer = small_tokenizer(TokenizerType::bpe, "nmt_nfkc");
  EXPECT_EQ(tokenizer.encode("  ho\u0308rt   ﬁnds "), tokenizer.encode("hört finds"));
}

TEST(Tokenizer, missing_file_is_a_data_error_that_names_it) {
  std::string message;
  EXPECT_EQ(kind_of([] { Tokenizer::load("/no/such.model"); }, &message), ErrorKind::data);
  EXPECT_NE(message.find("/no/such.model"), message.npos);
}

}  // namespace
}  // namespace heddle
