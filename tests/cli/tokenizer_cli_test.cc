// heddle tokenizer at the command line: train, encode and decode real files, and bad input.
#include <gtest/gtest.h>

#include <string>

#include "tests/support/cli_runner.h"

namespace heddle::testing {
namespace {

std::string corpus() {
  std::string text;
  for (int i = 0; i < 300; ++i) {
    text += "the old man number " + std::to_string(i) + " reads the newspaper.\n";
    text += "der alte Mann Nummer " + std::to_string(i) + " liest die Zeitung für sich.\n";
  }
  return text;
}

class TokenizerCommand : public ::testing::Test {
 protected:
  TokenizerCommand() { write_file(folder_ / "train.txt", corpus()); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  CliResult train(std::vector<std::string> flags, const std::string& out = "t.model") {
    std::vector<std::string> words = {"tokenizer",       "train",    "--input",
                                      path("train.txt"), "--output", path(out)};
    words.insert(words.end(), flags.begin(), flags.end());
    return run_heddle(words);
  }

  CliResult apply(const std::string& action, const std::string& input,
                  const std::vector<std::string>& flags = {}) {
    std::vector<std::string> words = {"tokenizer", action, path("t.model")};
    words.insert(words.end(), flags.begin(), flags.end());
    CliOptions options;
    options.input = input;
    return run_heddle(words, options);
  }

  TempDir folder_;
};

// Byte 10 is a token of its own.
TEST_F(TokenizerCommand, an_end_of_a_line_among_the_tokens_ends_no_line) {
  ASSERT_EQ(train({"--vocab-size", "320"}).exit_code, 0);
  const CliResult lines = apply("decode", "14 14\n14\n");
  EXPECT_EQ(lines.out, "  \n \n") << lines.err;
}

TEST_F(TokenizerCommand, train_encode_decode_gives_the_text_back) {
  ASSERT_EQ(train({"--vocab-size", "320"}).exit_code, 0);
  const std::string text = "the old man\n\n  zwei  Räume \xE2\x96\x81\n\xE6\x97\xA5\xE6\x9C\xAC\n";
  const CliResult ids = apply("encode", text);
  ASSERT_EQ(ids.exit_code, 0) << ids.err;
  EXPECT_EQ(ids.err, "");
  const CliResult back = apply("decode", ids.out);
  EXPECT_EQ(back.exit_code, 0) << back.err;
  EXPECT_EQ(back.out, text);
  EXPECT_EQ(apply("encode", "the man\n", {"--ids"}).out, apply("encode", "the man\n").out);
}

TEST_F(TokenizerCommand, tokens_are_printed_with_space_signs) {
  ASSERT_EQ(train({"--vocab-size", "340"}).exit_code, 0);
  EXPECT_EQ(apply("encode", "the  the\n", {"--tokens"}).out, "▁the ▁ ▁the\n");
}

TEST_F(TokenizerCommand, the_same_training_gives_the_same_file) {
  for (const std::string type : {"bpe", "unigram"}) {
    ASSERT_EQ(train({"--vocab-size", "320", "--type", type}, "a").exit_code, 0);
    ASSERT_EQ(train({"--vocab-size", "320", "--type", type}, "b").exit_code, 0);
    EXPECT_EQ(read_file(folder_ / "a"), read_file(folder_ / "b")) << type;
  }
}

TEST_F(TokenizerCommand, sampling_is_said) {
  const CliResult result = train({"--vocab-size", "310", "--max-sentences", "200", "--seed", "3"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("sampled 200 of 600 lines (seed 3)"), std::string::npos) << result.err;
}

TEST_F(TokenizerCommand, two_inputs_are_the_same_as_one_of_both) {
  write_file(folder_ / "more.txt", corpus());
  write_file(folder_ / "both.txt", corpus() + corpus());
  ASSERT_EQ(train({"--vocab-size", "320", "--input", path("more.txt")}, "a").exit_code, 0);
  ASSERT_EQ(run_heddle({"tokenizer", "train", "--input", path("both.txt"), "--output", path("b"),
                        "--vocab-size", "320"})
                .exit_code,
            0);
  EXPECT_EQ(read_file(folder_ / "a"), read_file(folder_ / "b"));
}

TEST_F(TokenizerCommand, unusable_corpora_are_data_errors_that_name_the_place) {
  EXPECT_EQ(train({"--vocab-size", "50000"}).exit_code, 3);
  EXPECT_EQ(train({"--input", path("missing.txt")}).exit_code, 3);
  write_file(folder_ / "bad.txt", "fine\nb\xFF\n");
  const CliResult bad = train({"--input", path("bad.txt"), "--vocab-size", "320"});
  EXPECT_EQ(bad.exit_code, 3);
  EXPECT_NE(bad.err.find("bad.txt: line 2: not UTF-8"), std::string::npos) << bad.err;
  write_file(folder_ / "train.txt", "");
  EXPECT_EQ(train({}).exit_code, 3);
}

TEST_F(TokenizerCommand, wrong_flags_are_usage_errors) {
  EXPECT_EQ(train({"--type", "word"}).exit_code, 2);
  EXPECT_EQ(train({"--vocab-size", "0"}).exit_code, 2);
  EXPECT_EQ(train({"--vocab-size", "many"}).exit_code, 2);
  EXPECT_EQ(train({"--unknown"}).exit_code, 2);
  EXPECT_EQ(run_heddle({"tokenizer"}).exit_code, 2);
}

TEST_F(TokenizerCommand, wrong_ids_are_data_errors_with_their_line) {
  ASSERT_EQ(train({"--vocab-size", "320"}).exit_code, 0);
  for (const std::string ids : {"320", "-1", "99999999999", "7x", "the"}) {
    const CliResult result = apply("decode", "5 6\n" + ids + "\n");
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_NE(result.err.find("line 2"), std::string::npos) << result.err;
  }
}

TEST_F(TokenizerCommand, damaged_models_are_data_errors_that_name_the_file) {
  ASSERT_EQ(train({"--vocab-size", "320"}).exit_code, 0);
  const std::string model = read_file(folder_ / "t.model");
  for (const std::string& damaged :
       {std::string(), model.substr(0, model.size() / 2), "x" + model}) {
    write_file(folder_ / "t.model", damaged);
    const CliResult result = apply("encode", "a\n");
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_NE(result.err.find("t.model"), std::string::npos) << result.err;
  }
}

}  // namespace
}  // namespace heddle::testing
