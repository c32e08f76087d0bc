// A folder that the tests of a suite share for their runs, and the flags of a run.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/cli_runner.h"

namespace heddle::testing {

/// The words between the blanks.
inline std::vector<std::string> words_of(const std::string& line) {
  std::istringstream stream(line);
  return {std::istream_iterator<std::string>(stream), {}};
}

/// Flags, each with its value, of which the later ones count.
inline std::vector<std::string> with(std::vector<std::string> flags,
                                     const std::vector<std::string>& more) {
  for (size_t i = 0; i + 1 < more.size(); i += 2) {
    const auto at = std::ranges::find(flags, more[i]);
    if (at != flags.end()) {
      at[1] = more[i + 1];
    } else {
      flags.insert(flags.end(), {more[i], more[i + 1]});
    }
  }
  return flags;
}

/// The program ended by this exit code and said these words.
inline void expect_refused(const CliResult& result, int exit_code, const std::string& words) {
  EXPECT_EQ(result.exit_code, exit_code) << result.err;
  EXPECT_NE(result.err.find(words), result.err.npos) << result.err;
}

class RunFolder : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { folder_ = std::make_unique<TempDir>(); }
  static void TearDownTestSuite() { folder_.reset(); }
  static std::string path(const std::string& name) { return (*folder_ / name).string(); }
  /// The model that a run was at last, or at its best.
  static std::string weights(const std::string& run, const std::string& which = "last") {
    return read_file(path(run) + "/" + which + "/model.safetensors");
  }
  using Train = std::function<CliResult(const std::string& run, const std::vector<std::string>&)>;
  /// Runs of so many updates: on one thread RUN, on three RUN-threads, and RUN-stopped, which ends
  /// early and goes on.
  static void expect_same_for_threads_and_stops(const Train& train, const std::string& run,
                                                int updates, int stop) {
    const auto trained = [&](const std::string& name, int until,
                             const std::vector<std::string>& more) {
      const CliResult result = train(name, with({"--max-updates", std::to_string(until)}, more));
      EXPECT_EQ(result.exit_code, 0) << result.err;
      return weights(name);
    };
    const std::string whole = trained(run, updates, {"--threads", "1"});
    EXPECT_EQ(trained(run + "-threads", updates, {"--threads", "3"}), whole);
    EXPECT_NE(trained(run + "-stopped", stop, {}), whole);
    EXPECT_EQ(trained(run + "-stopped", updates, {}), whole);
  }

 private:
  static inline std::unique_ptr<TempDir> folder_;
};

}  // namespace heddle::testing
