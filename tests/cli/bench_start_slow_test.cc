// heddle bench start: a model of 500 MB, written and then loaded by processes of their own.
#include <gtest/gtest.h>

#include "heddle/base/json/json.h"
#include "tests/support/cli_runner.h"

namespace heddle::testing {
namespace {

TEST(BenchStart, processes_that_load_a_model_are_counted) {
  const CliResult result = run_heddle({"bench", "start", "--seconds", "0", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json line = Json::parse(result.out);
  EXPECT_EQ(line.get_string("unit"), "starts/s");
  EXPECT_GT(line.get_double("value"), 0);
  EXPECT_GT(line.get_int("parameters"), 120'000'000);
}

}  // namespace
}  // namespace heddle::testing
