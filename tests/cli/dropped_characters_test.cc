// Commands with a model over characters, and texts with characters that it has never seen.
#include <gtest/gtest.h>

#include <cmath>

#include "heddle/text/training/tokenizer_trainer.h"
#include "tests/cli/language_model.h"

namespace heddle::testing {
namespace {

constexpr const char* kKnown = "the old man reads two books\n";

void write_character_model(const std::string& folder) {
  const std::vector<std::string> texts = {kKnown};
  const Tokenizer tokenizer = character_tokenizer(texts);
  nn::Parameters parameters(5);
  const auto gpt2 =
      make_model(nn::Scope(parameters),
                 Json::parse(fmt::format(
                     R"({{"model_type": "gpt2", "vocab_size": {}, "n_positions": 40, "n_embd": 32,
                          "n_layer": 1, "n_head": 4, "initializer_range": 0.3}})",
                     tokenizer.vocab_size())));
  save_model(folder, *gpt2, parameters);
  tokenizer.save_folder(folder);
}

class DroppedCharactersCli : public FolderFixture<write_character_model> {
 protected:
  CliResult eval(const std::string& content, std::vector<std::string> flags = {}) {
    write_file(folder_ / "text", content);
    flags.insert(flags.begin(), {"eval", model(), "--data", (folder_ / "text").string()});
    return run_heddle(flags);
  }
  TempDir folder_;
};

// A warning, and the figures of the text without them.
TEST_F(DroppedCharactersCli, eval_counts_what_the_model_sees) {
  const std::string known = std::string(kKnown) + "the man\n";
  const CliResult clean = eval(known, {"--json"}),
                  mixed =
                      eval("Привет, мир\t" + std::string(kKnown) + "the \u0007man\n", {"--json"});
  ASSERT_EQ(mixed.exit_code, 0) << mixed.err;
  EXPECT_EQ(clean.err, "");
  EXPECT_TRUE(contains(mixed.err, "the vocabulary lacks 12 characters")) << mixed.err;
  EXPECT_TRUE(contains(mixed.err,
                       "all figures are of the rest: 'П', 'р', 'и', 'в', 'е', 'т', ',', "
                       "'м', .. (10 different ones)"))
      << mixed.err;
  EXPECT_EQ(split_lines(mixed.err).size(), 1u);
  Json expected = Json::parse(clean.out), got = Json::parse(mixed.out);
  EXPECT_EQ(expected.get_int("dropped_characters"), 0);
  EXPECT_EQ(got.get_int("dropped_characters"), 12);
  // A space of the Russian text is known and stays.
  EXPECT_EQ(got.get_int("bytes"), expected.get_int("bytes") + 1);
  EXPECT_EQ(got.get_int("characters"), expected.get_int("characters") + 1);
  EXPECT_EQ(got.get_int("words"), expected.get_int("words"));
  EXPECT_EQ(got.get_int("tokens"), expected.get_int("tokens") + 1);
  EXPECT_NEAR(got.get_double("bits_per_byte"),
              got.get_double("nll") / std::log(2.0) / got.get_double("bytes"), 1e-9);
  const CliResult plain = eval("é" + known);
  EXPECT_TRUE(contains(plain.out, "\n1 character not read\n")) << plain.out;
}

TEST_F(DroppedCharactersCli, eval_gives_no_figures_of_a_text_that_the_tokens_are_no_part_of) {
  const TempDir other;
  std::filesystem::copy(model(), other.path(), std::filesystem::copy_options::recursive);
  const std::string file = (other / "tokenizer.json").string();
  Json json = Json::load(file);
  json["normalizer"] = Json::parse(R"({"type": "Lowercase"})");
  write_file(file, json.dump());
  write_file(folder_ / "text", "The old man é\n");
  const std::vector<std::string> words = {"eval", other.path().string(), "--data",
                                          (folder_ / "text").string()};
  const CliResult plain = run_heddle(words);
  ASSERT_EQ(plain.exit_code, 0) << plain.err;
  EXPECT_TRUE(contains(plain.err, "no figures per word, byte and character: 'é'")) << plain.err;
  EXPECT_FALSE(contains(plain.out, "per byte")) << plain.out;
  std::vector<std::string> with_json = words;
  with_json.push_back("--json");
  const Json said = Json::parse(run_heddle(with_json).out);
  for (const char* key : {"ppl_word", "bits_per_byte", "bits_per_character", "bytes", "words"}) {
    EXPECT_TRUE(said.at(key).is_null()) << key;
  }
  EXPECT_EQ(said.get_int("dropped_characters"), 1);
}

TEST_F(DroppedCharactersCli, generate_names_them_and_refuses_a_prompt_of_which_nothing_is_left) {
  const CliResult some = run_heddle({"generate", model(), "-n", "3", "-p", "the Zü 北京"});
  EXPECT_EQ(some.exit_code, 0) << some.err;
  EXPECT_EQ(some.err,
            "warning: generate: prompt 1: the vocabulary lacks 4 characters, which the model does "
            "not see: 'Z', 'ü', '北', '京'\n");
  const CliResult none = run_heddle({"generate", model(), "-n", "3", "-p", "北京"});
  EXPECT_EQ(none.exit_code, 3);
  EXPECT_EQ(none.out, "");
  EXPECT_TRUE(contains(none.err,
                       "prompt 1: the vocabulary has none of its characters, so nothing "
                       "is left of it: '北', '京'"))
      << none.err;
  const CliResult lines = run_heddle({"generate", model(), "-n", "3", "--skip-bad"},
                                     with_input("the ü\n北京\nthe ß\n"));
  EXPECT_EQ(lines.exit_code, 0) << lines.err;
  EXPECT_TRUE(contains(lines.err, "line 2: the vocabulary has none")) << lines.err;
  EXPECT_TRUE(contains(lines.err, "in all, the vocabulary lacks 4 characters of the input"))
      << lines.err;
  EXPECT_EQ(run_heddle({"generate", model(), "-n", "3", "-p", "the"}).err, "");
}

TEST_F(DroppedCharactersCli, training_from_a_model_names_them) {
  write_file(folder_ / "new.txt", std::string(kKnown) + "the bücher\n" + kKnown + kKnown);
  const std::vector<std::string> words = {"train",
                                          "--task",
                                          "causal_lm",
                                          "--from",
                                          model(),
                                          "--data",
                                          (folder_ / "new.txt").string(),
                                          "--out",
                                          (folder_ / "run").string(),
                                          "--block-size",
                                          "8",
                                          "--batch-size",
                                          "2",
                                          "--max-updates",
                                          "2",
                                          "--val-share",
                                          "0.3"};
  const CliResult result = run_heddle(words);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(contains(result.err,
                       "warning: the vocabulary lacks 2 characters of the texts, which "
                       "the model does not see: 'ü', 'c'\n"))
      << result.err;
}

TEST_F(DroppedCharactersCli, classes_are_of_the_rest) {
  const std::string table = (folder_ / "rows.csv").string(), run = (folder_ / "classes").string();
  write_file(table, "text,label\nthe man,a\nthe books,b\nthe man,a\nthe books,b\n");
  const CliResult trained = run_heddle({"train",
                                        "--task",
                                        "sequence_classification",
                                        "--tokenizer-type",
                                        "char",
                                        "--model-type",
                                        "bert",
                                        "--num-hidden-layers",
                                        "1",
                                        "--num-attention-heads",
                                        "1",
                                        "--hidden-size",
                                        "8",
                                        "--intermediate-size",
                                        "8",
                                        "--data",
                                        table,
                                        "--out",
                                        run,
                                        "--max-updates",
                                        "1"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const CliResult result = run_heddle({"classify", run, "--text", "the wüman"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err,
            "warning: classify: left out: 2 characters of the input that the vocabulary lacks: "
            "'w', 'ü'\n");  // in the order of code points, as by several processes
  write_file(folder_ / "new.csv", "text,label\nthe wüman,a\n");
  const CliResult eval =
      run_heddle({"eval", run, "--data", (folder_ / "new.csv").string(), "--json"});
  EXPECT_EQ(Json::parse(eval.out).get_int("dropped_characters"), 2);
  EXPECT_TRUE(contains(eval.err, "all figures are of the rest: 'w', 'ü'")) << eval.err;
}

TEST_F(DroppedCharactersCli, tokenizer_encode_says_at_the_end_what_has_no_ids) {
  const CliResult result =
      run_heddle({"tokenizer", "encode", model()}, with_input("the ü\nthe\n\u0007\n"));
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(split_lines(result.out).size(), 3u);
  EXPECT_EQ(result.err,
            "warning: tokenizer encode: left out: 2 characters of the input that the vocabulary "
            "lacks: 'ü', U+0007\n");
  EXPECT_EQ(run_heddle({"tokenizer", "encode", model()}, with_input("the\n")).err, "");
}

}  // namespace
}  // namespace heddle::testing
