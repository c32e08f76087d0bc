// heddle demo --images: it draws, learns, and leaves pages of what it has learned.
#include <gtest/gtest.h>

#include <regex>

#include "heddle/base/json/json.h"
#include "tests/cli/page_data.h"

namespace heddle::testing {
namespace {

TEST(ImageDemo, small_vit_names_drawn_shapes_and_shows_where_it_looks) {
  const TempDir dir;
  CliOptions options;
  options.folder = dir.path();
  options.timeout_seconds = 1800;
  const CliResult result = run_heddle({"demo", "--images"}, options);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::smatch found;
  ASSERT_TRUE(std::regex_search(result.out, found, std::regex(R"((\d+\.\d) % named right)")));
  EXPECT_GT(std::stod(found[1]), 95) << result.out;
  const Json data = page_data(dir / "runs/shapes/attention.html");
  EXPECT_EQ(data.at("heads").size(), 16u);
  EXPECT_EQ(data.at("classes").as_array()[0].get_string("label"), "ring");
  EXPECT_TRUE(std::filesystem::exists(dir / "runs/shapes/run/report.html"));
  const CliResult again = run_heddle({"demo", "--images"}, options);
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(again.out, result.out);  // shown again, not trained
}

}  // namespace
}  // namespace heddle::testing
