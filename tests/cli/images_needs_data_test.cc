// A recipe for images, whole.
#include <gtest/gtest.h>

#include "heddle/base/json/json.h"
#include "tests/support/cli_runner.h"
#include "tests/support/places.h"

namespace heddle::testing {
namespace {

TEST(ImageRecipes, mnist_reaches_98_of_100) {
  const TempDir folder;
  const std::string data = std::string(kData) + "/mnist", run = (folder / "run").string();
  CliOptions patient;
  patient.timeout_seconds = 900;
  const CliResult trained =
      run_heddle({"train", "--recipe", "mnist-vit", "--data", data, "--out", run}, patient);
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const CliResult judged = run_heddle({"eval", run, "--data", data, "--json"});
  ASSERT_EQ(judged.exit_code, 0) << judged.err;
  const Json report = Json::parse(judged.out);
  EXPECT_EQ(report.get_int("images"), 10'000);
  EXPECT_GE(report.at("accuracy").as_double(), 0.98);
}

}  // namespace
}  // namespace heddle::testing
