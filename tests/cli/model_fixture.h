// A small model directory for the tests of commands that use one.
#pragma once

#include <gtest/gtest.h>

#include <sstream>

#include "heddle/base/json/json.h"
#include "tests/infer/small_models.h"
#include "tests/support/cli_runner.h"

namespace heddle::testing {

/// The model that `write` makes in a folder, once for all tests of a class.
template <void (*write)(const std::string& folder)>
class FolderFixture : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TempDir>();
    write(model());
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
  static std::vector<Json> json_lines(const std::string& text) {
    std::vector<Json> lines;
    for (const std::string& line : split_lines(text)) lines.push_back(Json::parse(line));
    return lines;
  }

 private:
  static inline std::unique_ptr<TempDir> folder_;
};

using ModelFixture = FolderFixture<write_small_model>;

}  // namespace heddle::testing
