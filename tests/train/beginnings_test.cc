// What a run begins with: a folder that may be somebody's, a model that is there, texts.
#include <gtest/gtest.h>

#include <filesystem>

#include "heddle/base/files/lines.h"
#include "heddle/base/json/json.h"
#include "heddle/base/log.h"
#include "heddle/infer/loading/loaded_model.h"
#include "heddle/text/known_words.h"
#include "heddle/train/batches/corpora.h"
#include "heddle/train/trainer.h"
#include "tests/base/temporary.h"
#include "tests/support/cli_runner.h"
#include "tests/train/small_run.h"

namespace heddle::train {
namespace {

namespace fs = std::filesystem;
using testing::read_file;
using testing::small_config;

class Beginnings : public ::testing::Test {
 protected:
  Beginnings() {
    set_log_level(LogLevel::error);
    testing::write_pairs(folder_ / "data");
  }
  ~Beginnings() override { set_log_level(LogLevel::info); }
  RunResult train(const TrainConfig& config, const std::string& name,
                  const std::string& data = "data", const std::string& from = "") {
    RunPaths paths{.data = (folder_ / data).string()};
    if (!from.empty()) paths.from = (folder_ / from).string();
    return train_model(config, {.paths = paths, .out = (folder_ / name).string()});
  }
  testing::TempDir folder_;
};

// Of a run that is begun from another one: those of both; of one without a list nobody knows.
TEST_F(Beginnings, words_of_the_model_that_is_begun_from_are_known) {
  TrainConfig config = small_config();
  config.max_updates = 1;
  train(config, "base");
  testing::write_file(folder_ / "few" / "train.en", "a banana\n");
  testing::write_file(folder_ / "few" / "train.de", "eine Banane\n");
  for (const char* name : {"val.en", "val.de"}) {
    testing::write_file(folder_ / "few" / name, read_file(folder_ / "data" / name));
  }
  const auto begin = [&](const std::string& name) {
    config.max_updates = 2;
    train_model(config,
                {.paths = {.data = (folder_ / "few").string(), .from = (folder_ / "base").string()},
                 .out = (folder_ / name).string()});
    return KnownWords::find((folder_ / name / "best").string());
  };
  const auto words = begin("run");
  ASSERT_TRUE(words);
  EXPECT_EQ(words->unknown_words("The old man sees a banana, and Bread."),
            std::vector<std::string>{"and"});
  fs::remove(folder_ / "base" / "best" / KnownWords::kFileName);
  EXPECT_FALSE(begin("other"));
}

TEST_F(Beginnings, run_that_goes_on_is_not_begun_from_another_model) {
  TrainConfig config = small_config();
  config.max_updates = 1;
  train(config, "base");
  train(config, "plain");
  config.max_updates = 2;
  const auto go_on = [&](const std::string& name, const std::string& from) {
    return train(config, name, "data", from);
  };
  const std::string settings = read_file(folder_ / "plain" / "train.json");
  expect_error(ErrorKind::usage, {"plain was begun from nothing", "base", "overwrite"},
               [&] { go_on("plain", "base"); });
  EXPECT_EQ(read_file(folder_ / "plain" / "train.json"), settings);
  EXPECT_EQ(go_on("tuned", "base").updates, 2);
  config.max_updates = 3;
  expect_error(ErrorKind::usage, {"was begun from", "base, not ", "plain"},
               [&] { go_on("tuned", "plain"); });
  EXPECT_EQ(go_on("tuned", "base").updates, 3);
  fs::rename(folder_ / "base", folder_ / "moved");
  config.max_updates = 4;
  EXPECT_EQ(go_on("tuned", "moved").updates, 4);
}

TEST_F(Beginnings, epochs_are_those_that_the_updates_were_of) {
  TrainConfig config = small_config();
  config.max_updates = 3;
  config.log_every = 1;
  set_from_string(config, "batch_tokens", "1000000");  // an update an epoch
  train(config, "run");
  int64_t update = 0;
  LineReader log((folder_ / "run" / "log.jsonl").string());
  for (std::string text; log.next(text);) {
    const Json line = Json::parse(text);
    if (!line.contains("epoch")) continue;
    EXPECT_EQ(line.get_int("epoch"), ++update);
  }
  EXPECT_EQ(update, 3);
}

// A tokenizer may lose characters of both sides, which then seem to agree.
TEST_F(Beginnings, references_of_validation_are_the_lines_of_the_files) {
  testing::write_file(folder_ / "few" / "a.txt", "one two three\nein zwei drei\n");
  std::string source, target;
  for (int i = 0; i < 40; ++i) source += "one two three\n", target += "ein zwei drei\n";
  testing::write_file(folder_ / "few" / "train.en", source);
  testing::write_file(folder_ / "few" / "train.de", target);
  testing::write_file(folder_ / "few" / "val.en", "one\n\ntwo\nthree\n");
  testing::write_file(folder_ / "few" / "val.de", "\xe6\xbc\xa2\n\nZWEI\ndrei\n");
  ASSERT_EQ(testing::run_heddle({"tokenizer", "train", "--input", (folder_ / "few/a.txt").string(),
                                 "--no-byte-fallback", "--vocab-size", "24", "--output",
                                 (folder_ / "t.model").string()})
                .exit_code,
            0);
  TrainConfig config = small_config();
  config.stack.set("vocab_size", 24);
  set_from_string(config, "tokenizer", (folder_ / "t.model").string());
  fs::create_directories(folder_ / "run");
  const Corpora corpora =
      open_corpora(config, {.data = (folder_ / "few").string()}, (folder_ / "run").string());
  EXPECT_EQ(held_out_targets(corpora), (std::vector<std::string>{"\xe6\xbc\xa2", "ZWEI", "drei"}));
}

// What a killed start leaves is a folder with a lock.
TEST_F(Beginnings, a_folder_state_of_somebody_else_is_refused_and_kept) {
  for (const char* name : {"notes.txt", "2024/results.csv", "snapshot-1/weights.bin"}) {
    testing::write_file(folder_ / "mine" / "state" / name, "text");
    expect_error(ErrorKind::usage, {"mine", "state", "out"},
                 [&] { train(small_config(), "mine"); });
    EXPECT_EQ(read_file(folder_ / "mine" / "state" / name), "text");
    fs::remove_all(folder_ / "mine");
  }
  TrainConfig config = small_config();
  config.max_updates = 1;
  testing::write_file(folder_ / "killed" / "state" / "lock", "");
  EXPECT_EQ(train(config, "killed").updates, 1);
}

}  // namespace
}  // namespace heddle::train
