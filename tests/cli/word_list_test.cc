// The six-word example: lists of words for both sides, a model of them in seconds, its
// distributions.
#include <gtest/gtest.h>

#include "heddle/base/json/json.h"
#include "tests/support/cli_runner.h"

namespace heddle::testing {
namespace {

class SixWords : public ::testing::Test {
 protected:
  void SetUp() override {
    write_file(path("fr.txt"), "je\nsuis\nétudiant\nmerci\n");
    write_file(path("en.txt"), "a\nam\ni\nthanks\nstudent\n");
    for (const char* split : {"train", "val"}) {
      write_file(path(std::string("data/") + split + ".fr"), "je suis étudiant\nmerci\n");
      write_file(path(std::string("data/") + split + ".en"), "i am a student\nthanks\n");
    }
    words("fr");
    words("en");
  }
  std::string path(const std::string& name) { return (folder_ / name).string(); }
  void words(const std::string& side) {
    const CliResult made = run_heddle(
        {"tokenizer", "words", "--input", path(side + ".txt"), "--output", path(side + ".model")});
    ASSERT_EQ(made.exit_code, 0) << made.err;
  }
  CliResult train(const std::vector<std::string>& more) {
    std::vector<std::string> flags = {"train",
                                      "--data",
                                      path("data"),
                                      "--out",
                                      path("run"),
                                      "--source-lang",
                                      "fr",
                                      "--target-lang",
                                      "en",
                                      "--preset",
                                      "tiny",
                                      "--encoder-layers",
                                      "1",
                                      "--decoder-layers",
                                      "1",
                                      "--d-model",
                                      "32",
                                      "--encoder-ffn-dim",
                                      "32",
                                      "--decoder-ffn-dim",
                                      "32",
                                      "--dropout",
                                      "0",
                                      "--embedding-dropout",
                                      "0",
                                      "--learning-rate",
                                      "5e-3",
                                      "--warmup-updates",
                                      "10",
                                      "--max-updates",
                                      "150",
                                      "--validate-every",
                                      "150",
                                      "--vocab-size",
                                      "8",
                                      "--tokenizer",
                                      path("fr.model")};
    flags.insert(flags.end(), more.begin(), more.end());
    return run_heddle(flags);
  }

  TempDir folder_;
};

TEST_F(SixWords, pages_show_what_such_models_compute) {
  const CliResult trained =
      train({"--share-encoder-decoder-embeddings", "false", "--decoder-vocab-size", "9",
             "--target-tokenizer", path("en.model"), "--attention-scoring", "additive",
             "--position-embedding-type", "rotary", "--rope-theta", "256"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const CliResult explained = run_heddle({"explain", path("run"), "--text", "merci"});
  ASSERT_EQ(explained.exit_code, 0) << explained.err;
  EXPECT_NE(explained.out.find("tanh(q_i + k_j) · w"), std::string::npos) << explained.out;
  // 32 columns in 4 heads of 8: 4 pairs, 256^(-2i/8).
  const CliResult positions = run_heddle({"positions", path("run"), "--json"});
  ASSERT_EQ(positions.exit_code, 0) << positions.err;
  const Json table = Json::parse(positions.out);
  const auto& frequencies = table.at("frequencies").as_array();
  ASSERT_EQ(frequencies.size(), 4);
  EXPECT_NEAR(frequencies[1].as_double(), 0.25, 1e-9);
}

TEST_F(SixWords, separate_lists_train_in_seconds_and_translate) {
  const CliResult trained =
      train({"--share-encoder-decoder-embeddings", "false", "--decoder-vocab-size", "9",
             "--target-tokenizer", path("en.model")});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  CliOptions input;
  input.input = "je suis étudiant\nmerci\n";
  const CliResult plain = run_heddle({"translate", path("run")}, input);
  EXPECT_EQ(plain.out, "i am a student\nthanks\n") << plain.err;
  const CliResult json = run_heddle({"translate", path("run"), "--json", "--alignment"}, input);
  const Json first = Json::parse(json.out.substr(0, json.out.find('\n')));
  EXPECT_EQ(first.at("tokens").as_array().at(3).as_string(), "\xE2\x96\x81student");
  EXPECT_GT(first.get_double("score"), -0.5);  // nearly all of the probability
  const CliResult prefix = run_heddle({"translate", path("run"), "--prefix", "thanks"}, input);
  EXPECT_TRUE(prefix.out.starts_with("thanks")) << prefix.out;
  const CliResult eval = run_heddle(
      {"eval", path("run"), "--src", path("data/val.fr"), "--ref", path("data/val.en"), "--json"});
  EXPECT_LT(Json::parse(eval.out).get_double("ppl"), 1.2) << eval.err;
  const CliResult align = run_heddle(
      {"align", path("run"), "--src", path("data/val.fr"), "--tgt", path("data/val.en")});
  EXPECT_EQ(align.exit_code, 0) << align.err;
  const CliResult maps = run_heddle({"attention", path("run"), "--text", "je suis étudiant",
                                     "--target", "i am a student", "--json"});
  ASSERT_EQ(maps.exit_code, 0) << maps.err;
  const Json sides = Json::parse(maps.out).at("sides");
  EXPECT_EQ(sides.as_array()[0].at("tokens").as_array()[2].as_string(), "étudiant");
  EXPECT_EQ(sides.as_array()[1].at("tokens").as_array()[4].as_string(), "student");
  std::filesystem::remove(folder_ / "run" / "best" / "target_tokenizer.model");
  const CliResult missing = run_heddle({"translate", path("run")}, input);
  EXPECT_EQ(missing.exit_code, 3);
  EXPECT_NE(missing.err.find("target_tokenizer.model"), std::string::npos) << missing.err;
}

TEST_F(SixWords, vocabularies_that_do_not_fit_are_said) {
  struct Case {
    std::vector<std::string> flags;
    int code;
    std::string says;
  };
  for (const Case& c : {Case{{"--share-encoder-decoder-embeddings", "false", "--decoder-vocab-size",
                              "7", "--target-tokenizer", path("en.model")},
                             3,
                             "set --decoder-vocab-size 9"},
                        Case{{"--decoder-vocab-size", "9", "--target-tokenizer", path("en.model")},
                             2,
                             "share_encoder_decoder_embeddings"},
                        Case{{"--target-tokenizer", path("en.model")}, 2, "decoder_vocab_size"}}) {
    const CliResult result = train(c.flags);
    EXPECT_EQ(result.exit_code, c.code) << result.err;
    EXPECT_NE(result.err.find(c.says), std::string::npos) << result.err;
  }
  write_file(path("bad.txt"), "two words\n");
  const CliResult bad =
      run_heddle({"tokenizer", "words", "--input", path("bad.txt"), "--output", path("x.model")});
  EXPECT_EQ(bad.exit_code, 3);
  EXPECT_NE(bad.err.find("two words"), std::string::npos) << bad.err;
}

}  // namespace
}  // namespace heddle::testing
