// heddle demo, phrasebook, shapes and tokenizer leave alone what they did not make.
#include <gtest/gtest.h>

#include "tests/cli/train_runs.h"

namespace heddle::testing {
namespace {

TEST(DemoCommand, run_of_somebody_else_is_refused_and_untouched) {
  const TempDir folder;
  write_file(folder / "run" / "train.json", to_json(small_config()).dump());
  write_file(folder / "run" / "best" / "model.safetensors", "weeks of work");
  const auto before = files_below(folder / "run");
  const CliResult result = run_heddle({"demo", "--out", (folder / "run").string()});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("holds another training run"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("--out"), std::string::npos) << result.err;
  EXPECT_TRUE(before == files_below(folder / "run"));
}

TEST(PhrasebookCommand, text_of_somebody_else_is_replaced_only_when_asked) {
  const TempDir folder;
  const std::vector<std::string> words = {
      "phrasebook", "--pairs", "200", "--held-out", "5", "--out", (folder / "data").string()};
  for (const char* name : {"train.en", "test.de"}) {
    write_file(folder / "data" / name, "my own\n");
    const CliResult refused = run_heddle(words);
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_NE(refused.err.find(name), std::string::npos) << refused.err;
    EXPECT_NE(refused.err.find("--overwrite"), std::string::npos) << refused.err;
    EXPECT_EQ(read_file(folder / "data" / name), "my own\n");
    EXPECT_EQ(files_below(folder / "data").size(), 1u);
    std::filesystem::remove_all(folder / "data");
  }
  write_file(folder / "data" / "train.en", "my own\n");
  write_file(folder / "data" / "notes", "my own\n");
  std::vector<std::string> asked = words;
  asked.emplace_back("--overwrite");
  EXPECT_EQ(run_heddle(asked).exit_code, 0);
  EXPECT_NE(read_file(folder / "data" / "train.en"), "my own\n");
  EXPECT_EQ(read_file(folder / "data" / "notes"), "my own\n");
  EXPECT_EQ(files_below(folder / "data").size(), 7u);
}

TEST(ShapesCommand, images_are_written_and_replaced_only_when_asked) {
  const TempDir folder;
  std::vector<std::string> words = {"shapes",     "--count", "3",
                                    "--held-out", "2",       "--size",
                                    "32",         "--out",   (folder / "data").string()};
  ASSERT_EQ(run_heddle(words).exit_code, 0);
  EXPECT_EQ(files_below(folder / "data").size(), 7u);  // five images, two files of boxes
  const CliResult refused = run_heddle(words);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("--overwrite"), std::string::npos) << refused.err;
  const std::string first = read_file(folder / "data" / "train" / "000001.png");
  words.insert(words.end(), {"--overwrite", "--seed", "2", "--scene", "cells", "--size", "64"});
  words.erase(words.begin() + 5, words.begin() + 7);
  ASSERT_EQ(run_heddle(words).exit_code, 0);
  EXPECT_NE(read_file(folder / "data" / "train" / "000001.png"), first);
  words.insert(words.end(), {"--task", "classification"});
  EXPECT_EQ(run_heddle(words).exit_code, 2);
  const CliResult few = run_heddle(
      {"shapes", "--task", "classification", "--count", "5", "-o", (folder / "few").string()});
  EXPECT_EQ(few.exit_code, 2);
  EXPECT_NE(few.err.find("give 6 or more"), std::string::npos) << few.err;
  EXPECT_FALSE(std::filesystem::exists(folder / "few"));
  const CliResult small =
      run_heddle({"shapes", "--size", "8", "--overwrite", "--out", (folder / "data").string()});
  EXPECT_EQ(small.exit_code, 2);
  EXPECT_NE(small.err.find("8 x 8 pixels"), std::string::npos) << small.err;
  EXPECT_EQ(files_below(folder / "data").size(), 7u);
}

TEST(ShapesCommand, overwrite_removes_nothing_that_shapes_did_not_write) {
  const TempDir folder;
  const std::filesystem::path data = folder / "data";
  std::vector<std::string> words = {"shapes", "--count",        "6",     "--held-out", "2",
                                    "--task", "classification", "--out", data.string()};
  ASSERT_EQ(run_heddle(words).exit_code, 0);
  write_file(data / "notes", "my own\n");
  words.emplace_back("--overwrite");
  for (const char* name : {"val/mine.png", "train/star/notes.txt", "train/00001.png"}) {
    write_file(data / name, "my own\n");
    const size_t before = files_below(data).size();
    const CliResult refused = run_heddle(words);
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_NE(refused.err.find((data / name).string()), std::string::npos) << refused.err;
    EXPECT_EQ(files_below(data).size(), before) << name;
    std::filesystem::remove(data / name);
  }
  ASSERT_EQ(run_heddle(words).exit_code, 0);
  EXPECT_EQ(files_below(data).size(), 9u);
  // With boxes the folders of the classes are gone.
  const CliResult boxes = run_heddle({"shapes", "--count", "3", "--held-out", "0", "--size", "32",
                                      "--overwrite", "--out", data.string()});
  ASSERT_EQ(boxes.exit_code, 0) << boxes.err;
  EXPECT_EQ(files_below(data).size(), 5u);
  EXPECT_FALSE(std::filesystem::exists(data / "train" / "star"));
  EXPECT_FALSE(std::filesystem::exists(data / "val"));
  EXPECT_EQ(read_file(data / "notes"), "my own\n");
}

TEST(TokenizerTrainCommand, vocabulary_never_replaces_its_own_text) {
  const TempDir folder;
  const std::string text = (folder / "words.txt").string();
  write_file(text, "one\ntwo\nthree\n");
  std::filesystem::create_symlink(text, folder / "link");
  for (const char* command : {"train", "words"}) {
    const CliResult result =
        run_heddle({"tokenizer", command, "--input", text, "--output", (folder / "link").string()});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_NE(result.err.find("would be overwritten"), std::string::npos) << result.err;
    EXPECT_EQ(read_file(text), "one\ntwo\nthree\n");
  }
}

}  // namespace
}  // namespace heddle::testing
