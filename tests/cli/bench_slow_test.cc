// heddle bench with models of 500 MB, which it writes and then loads.
#include <gtest/gtest.h>

#include "heddle/base/json/json.h"
#include "heddle/kernels/cpu/matrix_unit.h"
#include "tests/support/cli_runner.h"

namespace heddle::testing {
namespace {

TEST(BenchOfLargeModels, processes_that_load_a_model_are_counted) {
  const CliResult result = run_heddle({"bench", "start", "--seconds", "0", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json line = Json::parse(result.out);
  EXPECT_EQ(line.get_string("unit"), "starts/s");
  EXPECT_GT(line.get_double("value"), 0);
  EXPECT_GT(line.get_int("parameters"), 120'000'000);
}

// Their format is no --precision of other commands.
TEST(BenchOfLargeModels, weights_of_four_bits_are_timed) {
  const CliResult result =
      run_heddle({"bench", "generate-gpt2", "--precision", "int4", "--seconds", "0", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json line = Json::parse(result.out);
  EXPECT_EQ(line.get_string("dtype"), "int4");
  EXPECT_EQ(line.get_string("matrix_unit"), matrix_unit_name(matrix_unit()));
  EXPECT_GT(line.get_double("value"), 0);
}

}  // namespace
}  // namespace heddle::testing
