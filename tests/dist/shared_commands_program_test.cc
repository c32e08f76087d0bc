// Commands on texts by several processes: the bytes of one.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "tests/dist/rank_runs.h"

namespace heddle::testing {
namespace {

// A translator that has hardly learned anything.
class SharedCommands : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TempDir>();
    write_pairs(*folder_ / "data");
    train::TrainConfig c = small_config();
    c.max_updates = c.validate_every = 5;
    const CliResult trained = run_train(*folder_, "run", c);
    ASSERT_EQ(trained.exit_code, 0) << trained.err;
  }
  static void TearDownTestSuite() { folder_.reset(); }
  static std::string path(const std::string& name) { return (*folder_ / name).string(); }

  static void expect_as_one(const std::vector<std::string>& words, const std::string& input = "",
                            int exit_code = 0) {
    testing::expect_as_one(*folder_, words, input, exit_code);
  }

  static inline std::unique_ptr<TempDir> folder_;
};

// More than the four blocks that four ranks take at once. Most of it is blank lines.
std::string long_text() {
  std::string text;
  for (int i = 0; i < 700; ++i) {
    text += fmt::format("{} {}\n{}\n", i % 3 == 0 ? "a" : "the", i % 5 == 0 ? "dog" : "old dog",
                        std::string(2000, ' '));
  }
  return text;
}

TEST_F(SharedCommands, translations_are_the_lines_of_one_process_in_its_order) {
  expect_as_one({"translate", path("run"), "--max-length", "4"}, long_text());
  expect_as_one({"translate", path("run"), "--max-length", "4"}, "a dog\n");
}

TEST_F(SharedCommands, draws_and_their_numbers_are_those_of_the_lines) {
  std::string text;
  for (int i = 0; i < 40; ++i) text += i % 2 == 0 ? "a dog\n" : "the old dog sees a house\n";
  expect_as_one({"translate", path("run"), "--sample", "--n-best", "3", "--max-length", "6"}, text);
}

TEST_F(SharedCommands, a_bad_line_ends_all_behind_the_lines_before_it) {
  std::string text;
  for (int i = 0; i < 60; ++i) text += i == 41 ? "\xff\xfe\n" : "a dog\n";
  const std::vector<std::string> words = {"translate", path("run"), "--max-length", "4"};
  expect_as_one(words, text, 3);
  std::vector<std::string> skipping = words;
  skipping.push_back("--skip-bad");
  expect_as_one(skipping, text);
}

TEST_F(SharedCommands, eval_measures_the_figures_of_one_process) {
  expect_as_one({"eval", path("run"), "--src", path("data/val.en"), "--ref", path("data/val.de"),
                 "--json", "--beam", "2"});
}

TEST_F(SharedCommands, eval_of_texts_measures_the_figures_of_one_process) {
  std::string text, table = "text\tlabel\n";
  for (int i = 0; i < 200; ++i) {
    const char* word = i * i % 7 < 3 ? "good" : "bad";
    text += fmt::format("the {} film was {}\n", i % 3 == 0 ? "old" : "new", word);
    table += fmt::format("the {} film\t{}\n", i % 3 == 0 ? "old" : "new", word);
  }
  write_file(path("text.txt"), text);
  write_file(path("texts.tsv"), table);
  const auto train = [&](const std::string& task, const std::string& data,
                         const std::vector<std::string>& more) {
    std::vector<std::string> words = {"train",    "--task",    task,       "--data",
                                      path(data), "--out",     path(task), "--max-updates",
                                      "3",        "--threads", "1"};
    words.insert(words.end(), more.begin(), more.end());
    const CliResult trained = run_heddle(words);
    EXPECT_EQ(trained.exit_code, 0) << trained.err;
  };
  train("causal_lm", "text.txt",
        {"--n-layer", "1", "--n-head", "1", "--n-embd", "16", "--n-positions", "16"});
  const std::vector<std::string> bert = {
      "--num-hidden-layers", "1",  "--num-attention-heads",     "1",  "--hidden-size", "16",
      "--intermediate-size", "16", "--max-position-embeddings", "24", "--vocab-size",  "60"};
  train("sequence_classification", "texts.tsv", bert);
  train("masked_lm", "text.txt", bert);
  // Several passes of each.
  const auto expect_shared = [&](const std::string& task, const std::string& data) {
    expect_as_one({"eval", path(task), "--data", path(data), "--json", "--batch-tokens", "64"});
  };
  expect_shared("causal_lm", "text.txt");
  expect_shared("sequence_classification", "texts.tsv");
  expect_shared("masked_lm", "text.txt");
  // More than all of four ranks take at once; the bad line is of the second portion.
  std::string lines;
  for (int i = 0; i < 300; ++i) {
    lines +=
        i == 270 ? "\xff\n" : fmt::format("the {} film was good\n", i % 3 == 0 ? "old" : "new");
  }
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"classify", path("sequence_classification")},
        {"embed", path("masked_lm"), "--json"}}) {
    expect_as_one(words, lines, 3);
    expect_as_one(words, "the film\n");
    std::vector<std::string> skipping = words;
    skipping.push_back("--skip-bad");
    expect_as_one(skipping, lines);
  }
}

TEST_F(SharedCommands, what_rank_0_cannot_write_ends_all_with_its_code) {
  const std::vector<std::string> words = {
      "eval",  path("run"),         "--src", path("data/val.en"),
      "--ref", path("data/val.de"), "-o",    "/dev/full"};
  for (const CliResult& result : run_ranks(2, *folder_, words)) {
    EXPECT_EQ(result.exit_code, 6) << result.err;
    EXPECT_TRUE(contains(result.err, "No space left")) << result.err;
  }
}

// Of work that is shared, of work that rank 0 does alone, and of lines that all answer.
TEST_F(SharedCommands, results_that_rank_0_cannot_write_end_all_with_its_code) {
  CliOptions full = fed_with("a dog\nthe old dog\n");
  full.stdout_file = "/dev/full";
  const std::string source = path("data/val.en"), target = path("data/val.de");
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"eval", path("run"), "--src", source, "--ref", target},
        {"score", "--hyp", target, "--ref", target, "--json"},
        {"translate", path("run"), "--max-length", "4"}}) {
    for (const CliResult& result : run_ranks(2, *folder_, words, full)) {
      EXPECT_EQ(result.exit_code, 6) << words[0] << ": " << result.err;
      EXPECT_TRUE(contains(result.err, "standard output: cannot write: No space left"))
          << result.err;
    }
  }
}

// Of two portions at least, where both ranks see some in each.
TEST_F(SharedCommands, characters_that_the_vocabulary_lacks_are_those_of_one_process) {
  write_file(path("letters.csv"), "text,label\nthe man,a\nthe books,b\nthe man,a\nthe books,b\n");
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
                                        path("letters.csv"),
                                        "--out",
                                        path("letters"),
                                        "--max-updates",
                                        "1"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const std::map<int, const char*> lacking = {
      {5, "z"}, {60, "q"}, {100, "y"}, {150, "x"}, {290, "w"}};
  std::string lines;
  for (int i = 0; i < 300; ++i) {
    lines += fmt::format("the man{}\n", lacking.contains(i) ? lacking.at(i) : "");
  }
  const std::vector<std::string> words = {"classify", path("letters")};
  EXPECT_TRUE(contains(run_ranks(1, *folder_, words, fed_with(lines))[0].err,
                       "5 characters of the input that the vocabulary lacks: 'q', 'w', 'x', 'y', "
                       "'z'\n"));
  expect_as_one(words, lines);
}

TEST_F(SharedCommands, scores_are_said_once) {
  expect_as_one({"score", "--hyp", path("data/val.de"), "--ref", path("data/val.de"), "--json"});
}

// Each works in a folder of its own, where one has no such file.
TEST_F(SharedCommands, a_file_that_one_rank_does_not_see_ends_all_with_the_code_of_that) {
  const std::vector<std::string> words = {"eval",   path("run"), "--src",
                                          "val.en", "--ref",     "val.de"};
  std::vector<CliOptions> options(2);
  options[0].folder = path("data");
  options[1].folder = folder_->path();
  for (const CliResult& result : run_each({words, words}, *folder_, options)) {
    EXPECT_EQ(result.exit_code, 3) << result.err;
    EXPECT_TRUE(contains(result.err, "val.en: cannot open")) << result.err;
  }
}

TEST_F(SharedCommands, flags_that_differ_are_refused_by_name) {
  std::vector<std::vector<std::string>> all = {{"translate", path("run"), "--beam", "2"},
                                               {"translate", path("run"), "--beam", "3"}};
  for (const CliResult& result : run_each(all, *folder_, fed_with("a dog\n"))) {
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_TRUE(contains(result.err, "--beam is 2 on rank 0 and 3 on rank 1")) << result.err;
  }
}

}  // namespace
}  // namespace heddle::testing
