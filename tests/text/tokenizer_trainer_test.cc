// Training: equal bytes, what is in the file, sampling, and corpora that cannot be used.
#include "heddle/text/training/tokenizer_trainer.h"

#include <gtest/gtest.h>

#include "heddle/base/error.h"
#include "heddle/base/parallel.h"
#include "tests/text/small_tokenizers.h"

namespace heddle {
namespace {

using testing::small_corpus;

struct Failure {
  ErrorKind kind = ErrorKind::internal;
  std::string message;
};

Failure failure_of(const std::vector<std::string>& lines, const TokenizerTraining& options) {
  try {
    train_tokenizer(lines, options);
  } catch (const Error& e) {
    return {e.kind(), e.what()};
  }
  ADD_FAILURE() << "no error";
  return {};
}

class Training : public ::testing::TestWithParam<TokenizerType> {
 protected:
  TokenizerTraining options_{.type = GetParam(), .vocab_size = 312};
};

TEST_P(Training, same_input_gives_the_same_bytes_on_any_number_of_threads) {
  set_num_threads(1);
  const std::string one = train_tokenizer(small_corpus(), options_).model_bytes();
  set_num_threads(4);
  EXPECT_EQ(train_tokenizer(small_corpus(), options_).model_bytes(), one);
  options_.seed = 99;  // nothing is sampled
  EXPECT_EQ(train_tokenizer(small_corpus(), options_).model_bytes(), one);
}

TEST_P(Training, corpus_beyond_the_limit_is_sampled_by_seed_and_that_is_said) {
  std::vector<std::string> lines;
  for (int copy = 0; copy < 5; ++copy) {
    for (const auto& line : small_corpus()) lines.push_back(line);
  }
  options_.max_sentences = 300;
  std::vector<std::string> log;
  const auto train = [&](uint64_t seed) {
    options_.seed = seed;
    return train_tokenizer(lines, options_, [&](const std::string& m) { log.push_back(m); });
  };
  const std::string first = train(1).model_bytes();
  EXPECT_EQ(log, std::vector<std::string>{"sampled 300 of 1000 lines (seed 1)"});
  EXPECT_EQ(train(1).model_bytes(), first);
  EXPECT_NE(train(2).model_bytes(), first);
}

TEST_P(Training, corpus_too_small_for_the_vocabulary_is_a_data_error_with_a_size_that_works) {
  options_.vocab_size = 5000;
  const Failure failure = failure_of(small_corpus(), options_);
  EXPECT_EQ(failure.kind, ErrorKind::data);
  const size_t at = failure.message.find("vocab_size ");
  ASSERT_NE(at, failure.message.npos) << failure.message;
  options_.vocab_size = std::stoi(failure.message.substr(at + 11));
  EXPECT_EQ(train_tokenizer(small_corpus(), options_).vocab_size(), options_.vocab_size);
}

TEST_P(Training, more_characters_than_tokens_is_a_data_error_with_a_size_that_works) {
  options_.vocab_size = 270;
  const Failure failure = failure_of(small_corpus(), options_);
  EXPECT_EQ(failure.kind, ErrorKind::data);
  const size_t at = failure.message.find("vocab_size ");
  ASSERT_NE(at, failure.message.npos) << failure.message;
  options_.vocab_size = std::stoi(failure.message.substr(at + 11));
  EXPECT_EQ(train_tokenizer(small_corpus(), options_).vocab_size(), options_.vocab_size);
}

TEST_P(Training, corpus_without_text_is_a_data_error) {
  for (const std::vector<std::string>& lines : std::vector<std::vector<std::string>>{
           {}, {"", ""}, {"   "}, {"\t", "\u200B"}, {"\u2581"}, {"\x01"}}) {
    for (const char* normalization : {"identity", "nmt_nfkc"}) {
      options_.normalization = normalization;
      EXPECT_EQ(failure_of(lines, options_).kind, ErrorKind::data);
    }
  }
}

TEST_P(Training, tiny_corpora_train_or_fail_with_a_data_error) {
  for (const char* line : {"a", "aa", "ab", "a b", "aaaa aaaa", "."}) {
    for (const int64_t size : {261, 262, 263, 264, 500}) {
      options_.vocab_size = size;
      try {
        EXPECT_EQ(train_tokenizer(std::vector<std::string>{line}, options_).vocab_size(), size);
      } catch (const Error& e) {
        EXPECT_EQ(e.kind(), ErrorKind::data) << e.what();
      }
    }
  }
}

TEST_P(Training, line_that_is_not_utf8_is_a_data_error_with_its_number) {
  const Failure failure = failure_of({"fine", "b\xC3", "fine"}, options_);
  EXPECT_EQ(failure.kind, ErrorKind::data);
  EXPECT_NE(failure.message.find("line 2"), std::string::npos) << failure.message;
}

TEST_P(Training, words_and_lines_of_any_length_are_taken) {
  std::vector<std::string> lines = small_corpus();
  std::string many;
  for (int i = 0; i < 20000; ++i) many += "longline ";
  lines.push_back(many);
  lines.push_back(std::string(100'000, 'y'));       // SentencePiece's BPE would abort
  lines.push_back(std::string(4095, 'z') + "€€€");  // a cut would fall inside a character
  std::vector<std::string> log;
  const Tokenizer tokenizer =
      train_tokenizer(lines, options_, [&](const std::string& m) { log.push_back(m); });
  EXPECT_EQ(log, std::vector<std::string>{"cut 3 lines of more than 4096 bytes"});
  EXPECT_EQ(tokenizer.encode("longline").size(), 1u);
}

TEST_P(Training, signs_that_sentencepiece_reserves_do_not_drop_their_line) {
  std::vector<std::string> lines = small_corpus();
  for (int i = 0; i < 300; ++i) lines.push_back("wort▅wort ab▁ab");
  const Tokenizer tokenizer = train_tokenizer(lines, options_);
  EXPECT_LE(tokenizer.encode("wort").size(), 2u);
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("wort▅ ▁")), "wort▅ ▁");
}

TEST_P(Training, lower_case_is_kept_in_the_model) {
  options_.lower_case = true;
  const Tokenizer tokenizer = train_tokenizer(small_corpus(), options_);
  EXPECT_EQ(tokenizer.decode(Tokenizer::from_bytes(tokenizer.model_bytes()).encode("Der MANN Ä")),
            "der mann ä");
}

TEST_P(Training, options_out_of_range_are_usage_errors) {
  const auto kind = [&](const auto& change) {
    TokenizerTraining options = options_;
    change(options);
    return failure_of(small_corpus(), options).kind;
  };
  EXPECT_EQ(kind([](auto& o) { o.vocab_size = 0; }), ErrorKind::usage);
  EXPECT_EQ(kind([](auto& o) { o.vocab_size = -5; }), ErrorKind::usage);
  EXPECT_EQ(kind([](auto& o) { o.vocab_size = int64_t{1} << 40; }), ErrorKind::usage);
  EXPECT_EQ(kind([](auto& o) { o.character_coverage = 0.5; }), ErrorKind::usage);
  EXPECT_EQ(kind([](auto& o) { o.character_coverage = std::stod("nan"); }), ErrorKind::usage);
  EXPECT_EQ(kind([](auto& o) { o.max_sentences = 0; }), ErrorKind::usage);
  EXPECT_EQ(kind([](auto& o) { o.normalization = "nfc"; }), ErrorKind::usage);
}

INSTANTIATE_TEST_SUITE_P(Types, Training,
                         ::testing::Values(TokenizerType::bpe, TokenizerType::unigram),
                         [](const auto& suite) {
                           return suite.param == TokenizerType::bpe ? "bpe" : "unigram";
                         });

TEST(TokenizerType, unknown_name_is_a_usage_error) {
  EXPECT_EQ(tokenizer_type("bpe"), TokenizerType::bpe);
  EXPECT_EQ(tokenizer_type("unigram"), TokenizerType::unigram);
  EXPECT_THROW(tokenizer_type("word"), Error);
}

}  // namespace
}  // namespace heddle
