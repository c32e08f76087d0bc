// Short runs of a small translator over pairs that a test makes.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "heddle/base/log.h"
#include "heddle/base/parallel.h"
#include "heddle/train/trainer.h"
#include "tests/base/temporary.h"
#include "tests/train/small_run.h"

namespace heddle::train {

/// Pairs in the folder `data`, quiet, and as many threads behind a test as before it.
class PairRun : public ::testing::Test {
 protected:
  PairRun() {
    set_log_level(LogLevel::error);
    testing::write_pairs(std::filesystem::path(folder_ / "data"));
  }
  ~PairRun() override {
    set_log_level(LogLevel::info);
    set_num_threads(threads_);
  }
  RunResult train(const TrainConfig& config, const std::string& name,
                  const std::string& data = "data", const std::string& teacher = "") {
    return train_model(
        config, {.paths = {.data = folder_ / data, .teacher = teacher}, .out = folder_ / name});
  }
  std::string text(const std::string& name) { return testing::read_file(folder_ / name); }
  std::string weights(const std::string& name) { return text(name + "/last/model.safetensors"); }
  std::vector<std::string> lines(const std::string& name) {
    std::istringstream in(text(name));
    std::vector<std::string> all;
    for (std::string line; std::getline(in, line);) all.push_back(line);
    return all;
  }
  TemporaryFolder folder_;
  int threads_ = num_threads();
};

}  // namespace heddle::train
