// heddle generate on a small language model.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/cli/language_model.h"

namespace heddle::testing {

class GenerateCommand : public LanguageModelFixture {
 protected:
  CliResult generate(std::vector<std::string> flags, const std::string& input = "") {
    flags.insert(flags.begin(), {"generate", model()});
    return run_heddle(flags, with_input(input));
  }
  std::vector<Json> objects(std::vector<std::string> flags, const std::string& input = "") {
    flags.push_back("--json");
    const CliResult result = generate(std::move(flags), input);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return json_lines(result.out);
  }
  void refused(int exit_code, const std::string& part, std::vector<std::string> flags,
               const std::string& input = "") {
    const CliResult result = generate(std::move(flags), input);
    EXPECT_EQ(result.exit_code, exit_code) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
  }
};

}  // namespace heddle::testing
