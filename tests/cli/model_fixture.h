// A small model directory for the tests of commands that use one.
#pragma once

#include <gtest/gtest.h>

#include <sstream>

#include "tests/infer/small_models.h"
#include "tests/support/cli_runner.h"

namespace heddle::testing {

/// The model is written once for all tests of a class.
class ModelFixture : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TempDir>();
    write_small_model(model());
  }
  static void TearDownTestSuite() { folder_.reset(); }
  static std::string model() { return (*folder_ / "model").string(); }

  static CliOptions with_input(const std::string& text) {
    CliOptions options;
    options.input = text;
    return options;
  }
  static std::vector<std::string> split_lines(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
  }

 private:
  static inline std::unique_ptr<TempDir> folder_;
};

}  // namespace heddle::testing
