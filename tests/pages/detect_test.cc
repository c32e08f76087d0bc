// The page of heddle detect, driven: boxes over the image, and the least score.
#include <gtest/gtest.h>

#include "tests/pages/browser.h"
#include "tests/support/cli_runner.h"

namespace heddle::testing {
namespace {

class DetectPage : public PageTest {
 protected:
  void SetUp() override {
    const std::string run = (folder_ / "run").string();
    const CliResult trained =
        run_heddle({"train", "--recipe", "shapes-detr", "--out", run, "--drawn-images", "4",
                    "--drawn-held-out", "1", "--d-model", "16", "--max-updates", "1",
                    "--batch-size", "2", "--validate-every", "1", "--precision", "f32"});
    ASSERT_EQ(trained.exit_code, 0) << trained.err;
    const std::string image = std::string(kFixtures) + "/images/rgb.png";
    const CliResult found = run_heddle({"detect", run, image, "--threshold", "0", "--page", path_});
    ASSERT_EQ(found.exit_code, 0) << found.err;
  }
};

TEST_F(DetectPage, boxes_follow_the_least_score) {
  drive(path_, R"js(
    const rects = () => document.querySelectorAll("svg.detections rect[data-label]"), d = heddle.data;
    reader.equal(rects().length, d.images[0].boxes.length, "all boxes at 0");
    const slider = reader.find("#threshold");
    slider.value = "1";
    slider.dispatchEvent(new Event("input", {bubbles: true}));
    reader.equal(rects().length, 0, "none at 1");
    reader.check(document.querySelector("svg.detections image").getAttribute("href").startsWith("data:image/png;base64,"), "the image is in the page");
    reader.check(reader.tooWide() <= 0, "no wider than the window: " + reader.tooWide());
    reader.equal(JSON.parse((await reader.saved('[data-export="json"]')).text).images.length, 1, "saved");
  )js",
        5);
}

TEST_F(DetectPage, layout_holds) { check_layout(path_); }

}  // namespace
}  // namespace heddle::testing
