// Short runs of a small BERT over labelled texts that a test makes.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "heddle/base/log.h"
#include "heddle/train/tasks/text_task.h"
#include "heddle/train/trainer.h"
#include "tests/base/temporary.h"
#include "tests/train/small_run.h"

namespace heddle::train {

inline TrainConfig tiny_bert(const std::string& task) {
  TrainConfig c = default_config(task, "bert");
  for (const char* key : {"num_hidden_layers", "num_attention_heads"}) c.stack.set(key, 1);
  for (const char* key : {"hidden_size", "intermediate_size"}) c.stack.set(key, 16);
  c.stack.set("max_position_embeddings", 24);
  c.stack.set("vocab_size", 60);
  testing::make_short(c);
  return c;
}

class StackRun : public ::testing::Test {
 protected:
  StackRun() {
    set_log_level(LogLevel::error);
    std::string table = "text\tlabel\n", words;
    for (int i = 0; i < 120; ++i) {
      const bool is_good = i * i % 5 < 2;
      table += fmt::format("the {} {} was {}\t{}\n", i % 3 == 0 ? "old" : "new",
                           i % 2 == 0 ? "film" : "book", is_good ? "good" : "bad", is_good);
      words += fmt::format("Anna PER\nreads O\nthe O\n{} OBJ\n\n", i % 2 == 0 ? "paper" : "letter");
    }
    folder_.write("texts.tsv", table);
    folder_.write("words.conll", words);
  }
  ~StackRun() override { set_log_level(LogLevel::info); }
  RunResult train(const TrainConfig& config, const std::string& name,
                  const std::string& data = "texts.tsv", const std::string& from = "") {
    return train_model(
        config, {.paths = {.data = folder_ / data, .from = from.empty() ? "" : folder_ / from},
                 .out = folder_ / name});
  }
  TrainConfig fine_tuning(const std::string& task, const std::string& from) {
    TrainConfig c = tiny_bert(task);
    c.stack = config_of_model(folder_ / from);
    return c;
  }
  std::string file(const std::string& path) { return testing::read_file(folder_ / path); }
  // Whole, and stopped at update 13, past two saved states.
  void expect_same_bits_in_two(TrainConfig config, const std::string& weights,
                               const std::string& data = "texts.tsv",
                               const std::string& from = "") {
    train(config, "whole", data, from);
    config.max_updates = 13;
    train(config, "two", data, from);
    config.max_updates = 20;
    train(config, "two", data, from);
    EXPECT_TRUE(file("whole/last/" + weights) == file("two/last/" + weights));
  }
  TemporaryFolder folder_;
};

}  // namespace heddle::train
