// What a run begins with: a folder that may be somebody's, a model that is there, texts.
#include <gtest/gtest.h>

#include <filesystem>

#include "heddle/base/json/json.h"
#include "heddle/base/log.h"
#include "heddle/infer/loading/loaded_model.h"
#include "heddle/text/known_words.h"
#include "heddle/train/batches/corpora.h"
#include "tests/support/cli_runner.h"
#include "tests/train/pair_run.h"

namespace heddle::train {
namespace {

namespace fs = std::filesystem;
using testing::small_config;

class Beginnings : public PairRun {
 protected:
  RunResult begin(const TrainConfig& config, const std::string& name, const std::string& from,
                  const std::string& data = "data") {
    return train_model(
        config, {.paths = {.data = folder_ / data, .from = folder_ / from}, .out = folder_ / name});
  }
  void write(const std::string& name, const std::string& text) {
    testing::write_file(folder_ / name, text);
  }
};

// Of a run that is begun from another one: those of both; of one without a list nobody knows.
TEST_F(Beginnings, words_of_the_model_that_is_begun_from_are_known) {
  TrainConfig config = small_config();
  config.max_updates = 1;
  train(config, "base");
  write("few/train.en", "a banana\n");
  write("few/train.de", "eine Banane\n");
  for (const char* name : {"val.en", "val.de"}) {
    write(std::string("few/") + name, text(std::string("data/") + name));
  }
  const auto words_of = [&](const std::string& name) {
    config.max_updates = 2;
    begin(config, name, "base", "few");
    return KnownWords::find(folder_ / (name + "/best"));
  };
  const auto words = words_of("run");
  ASSERT_TRUE(words);
  EXPECT_EQ(words->unknown_words("The old man sees a banana, and Bread."),
            std::vector<std::string>{"and"});
  fs::remove(folder_ / (std::string("base/best/") + KnownWords::kFileName));
  EXPECT_FALSE(words_of("other"));
}

TEST_F(Beginnings, run_that_goes_on_is_not_begun_from_another_model) {
  TrainConfig config = small_config();
  config.max_updates = 1;
  train(config, "base");
  train(config, "plain");
  config.max_updates = 2;
  const std::string settings = text("plain/train.json");
  expect_error(ErrorKind::usage, {"plain was begun from nothing", "base", "overwrite"},
               [&] { begin(config, "plain", "base"); });
  EXPECT_EQ(text("plain/train.json"), settings);
  EXPECT_EQ(begin(config, "tuned", "base").updates, 2);
  config.max_updates = 3;
  expect_error(ErrorKind::usage, {"was begun from", "base, not ", "plain"},
               [&] { begin(config, "tuned", "plain"); });
  EXPECT_EQ(begin(config, "tuned", "base").updates, 3);
  fs::rename(folder_ / "base", folder_ / "moved");
  config.max_updates = 4;
  EXPECT_EQ(begin(config, "tuned", "moved").updates, 4);
}

TEST_F(Beginnings, who_ends_a_run_within_its_warmup_is_told) {
  TrainConfig config = small_config();
  config.max_updates = 2;
  set_log_level(LogLevel::warning);
  const auto is_told = [&](int64_t warmup_updates, const char* name) {
    config.warmup_updates = warmup_updates;
    ::testing::internal::CaptureStderr();
    train(config, name);
    const std::string said = ::testing::internal::GetCapturedStderr();
    return said.find("rises until update 2, and the run ends at 2") != said.npos;
  };
  EXPECT_TRUE(is_told(2, "too_long"));
  EXPECT_FALSE(is_told(1, "run"));
}

TEST_F(Beginnings, epochs_are_those_that_the_updates_were_of) {
  TrainConfig config = small_config();
  config.max_updates = 3;
  config.log_every = 1;
  set_from_string(config, "batch_tokens", "1000000");  // an update an epoch
  train(config, "run");
  int64_t update = 0;
  for (const std::string& one : lines("run/log.jsonl")) {
    const Json line = Json::parse(one);
    if (!line.contains("epoch")) continue;
    EXPECT_EQ(line.get_int("epoch"), ++update);
  }
  EXPECT_EQ(update, 3);
}

// A tokenizer may lose characters of both sides, which then seem to agree.
TEST_F(Beginnings, references_of_validation_are_the_lines_of_the_files) {
  write("few/a.txt", "one two three\nein zwei drei\n");
  std::string source, target;
  for (int i = 0; i < 40; ++i) source += "one two three\n", target += "ein zwei drei\n";
  write("few/train.en", source);
  write("few/train.de", target);
  write("few/val.en", "one\n\ntwo\nthree\n");
  write("few/val.de", "\xe6\xbc\xa2\n\nZWEI\ndrei\n");
  ASSERT_EQ(testing::run_heddle({"tokenizer", "train", "--input", folder_ / "few/a.txt",
                                 "--no-byte-fallback", "--vocab-size", "24", "--output",
                                 folder_ / "t.model"})
                .exit_code,
            0);
  TrainConfig config = small_config();
  config.stack.set("vocab_size", 24);
  set_from_string(config, "tokenizer", folder_ / "t.model");
  fs::create_directories(folder_ / "run");
  const Corpora corpora = open_corpora(config, {.data = folder_ / "few"}, folder_ / "run");
  EXPECT_EQ(held_out_targets(corpora), (std::vector<std::string>{"\xe6\xbc\xa2", "ZWEI", "drei"}));
}

// What a killed start leaves is a folder with a lock.
TEST_F(Beginnings, a_folder_state_of_somebody_else_is_refused_and_kept) {
  for (const char* name : {"notes.txt", "2024/results.csv", "snapshot-1/weights.bin"}) {
    const std::string file = std::string("mine/state/") + name;
    write(file, "text");
    expect_error(ErrorKind::usage, {"mine", "state", "out"},
                 [&] { train(small_config(), "mine"); });
    EXPECT_EQ(text(file), "text");
    fs::remove_all(folder_ / "mine");
  }
  TrainConfig config = small_config();
  config.max_updates = 1;
  write("killed/state/lock", "");
  EXPECT_EQ(train(config, "killed").updates, 1);
}

// Of a run that is there: saves, stops and going on remove what they wrote alone.
TEST_F(Beginnings, what_somebody_put_into_the_state_of_a_run_stays) {
  TrainConfig config = small_config();
  config.max_updates = 2;
  train(config, "run");
  const std::vector<std::string> names = {
      "run/state/notes.txt", "run/state/old/snapshot-1.safetensors",
      "run/state/snapshot-best.safetensors", "run/state/snapshot-000000002-best.safetensors",
      "run/state/weights-2.safetensors"};
  for (const std::string& name : names) write(name, "text");
  write("run/state/snapshot-000000001.safetensors", "what a killed save has left");
  config.max_updates = 4;
  EXPECT_EQ(train(config, "run").updates, 4);
  train_model(config,
              {.paths = {.data = folder_ / "data"}, .out = folder_ / "run", .overwrite = true});
  for (const std::string& name : names) EXPECT_EQ(text(name), "text") << name;
  EXPECT_FALSE(fs::exists(fs::path(folder_ / "run/state/snapshot-000000001.safetensors")));
}

}  // namespace
}  // namespace heddle::train
