// A detector learns eight images by heart: what fails where the matching or a gradient is wrong.
#include <gtest/gtest.h>

#include "heddle/base/json/json.h"
#include "tests/support/cli_runner.h"

namespace heddle::testing {
namespace {

TEST(DetectorByHeart, eight_images_are_found_whole) {
  const TempDir folder;
  const std::string data = (folder / "data").string(), run = (folder / "run").string();
  const CliResult drawn = run_heddle({"shapes", "--out", data, "--count", "8", "--held-out", "0"});
  ASSERT_EQ(drawn.exit_code, 0) << drawn.err;
  CliOptions options;
  options.timeout_seconds = 600;
  const CliResult trained = run_heddle({"train",       "--recipe",
                                        "shapes-detr", "--drawn",
                                        "none",        "--data",
                                        data,          "--val-data",
                                        data,          "--out",
                                        run,           "--turns",
                                        "none",        "--batch-size",
                                        "8",           "--d-model",
                                        "64",          "--encoder-ffn-dim",
                                        "128",         "--decoder-ffn-dim",
                                        "128",         "--encoder-layers",
                                        "2",           "--decoder-layers",
                                        "2",           "--max-updates",
                                        "500",         "--warmup-updates",
                                        "50",          "--learning-rate",
                                        "0.001",       "--ema-decay",
                                        "0.98",        "--validate-every",
                                        "500"},
                                       options);
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const CliResult judged = run_heddle({"eval", run, "--data", data, "--json"}, options);
  ASSERT_EQ(judged.exit_code, 0) << judged.err;
  EXPECT_GT(Json::parse(judged.out).get_double("map_50"), 0.999) << judged.out;
}

}  // namespace
}  // namespace heddle::testing
