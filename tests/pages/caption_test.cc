// The page of heddle caption, driven: a word shows where the model looked.
#include <gtest/gtest.h>

#include "tests/pages/browser.h"
#include "tests/support/cli_runner.h"

namespace heddle::testing {
namespace {

class CaptionPageTest : public PageTest {
 protected:
  void SetUp() override {
    const std::string run = (folder_ / "run").string(), set = (folder_ / "set").string();
    const CliResult drawn = run_heddle(
        {"shapes", "--task", "captioning", "--out", set, "--count", "8", "--held-out", "2"});
    ASSERT_EQ(drawn.exit_code, 0) << drawn.err;
    const CliResult trained =
        run_heddle({"train", "--task", "captioning", "--data", set, "--out", run, "--max-updates",
                    "3", "--batch-size", "4", "--validate-every", "3", "--hidden-size", "16",
                    "--judged-images", "0", "--precision", "f32"});
    ASSERT_EQ(trained.exit_code, 0) << trained.err;
    const CliResult made =
        run_heddle({"caption", run, set + "/test/000001.png", set + "/test/000002.png", "--beam",
                    "3", "--n-best", "2", "--min-length", "3", "--page", path_});
    ASSERT_EQ(made.exit_code, 0) << made.err;
  }
};

TEST_F(CaptionPageTest, words_show_where_the_model_looked) {
  drive(path_, R"js(
    const d = heddle.data, sections = document.querySelectorAll("section.captioned");
    reader.equal(sections.length, 2, "two images");
    const words = [...sections[0].querySelectorAll("button.word")];
    reader.equal(words.length, d.images[0].captions.reduce((n, c) => n + c.words.length, 0), "a button a word");
    const canvas = sections[0].querySelector("canvas"), pixels = () => canvas.toDataURL();
    const before = pixels();
    words[0].focus();
    const first = pixels();
    reader.check(first !== before, "the map lies over the image");
    reader.equal(words[0].getAttribute("aria-pressed"), "true", "the word is marked");
    words[0].dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowRight", bubbles: true}));
    reader.equal(document.activeElement, words[1], "the arrow goes on");
    reader.check(sections[0].textContent.includes(`“${d.images[0].captions[0].words[1].text}” looked most at row`), "said in words");
    const other = document.querySelectorAll("section.captioned")[1].querySelector("canvas").toDataURL();
    const gate = d.images[0].captions[0].words[1].gate;
    reader.check(gate > 0 && gate < 1, "a gate: " + gate);
    const bar = words[1].querySelector(".gate").getBoundingClientRect(), word = words[1].getBoundingClientRect();
    reader.check(Math.abs(bar.width / word.width - gate) < 0.05, "the bar under the word is as long");
    reader.check(sections[0].textContent.includes(`By its gate ${heddle.percent(gate)} of that counted`), "and is said");
    words[2].dispatchEvent(new PointerEvent("pointerenter"));
    reader.equal(words[2].getAttribute("aria-pressed"), "true", "a word is pointed at");
    reader.equal(document.querySelectorAll("section.captioned")[1].querySelector("canvas").toDataURL(), other, "the other image stays");
    const saved = JSON.parse((await reader.saved('[data-export="json"]')).text);
    const weights = saved.images[0].captions[0].words[0].weights;
    reader.equal(weights.length, 64, "a weight a cell");
    reader.equal(saved.images[0].captions[0].words[1].gate, gate, "the gate is saved");
    reader.check(Math.abs(weights.reduce((a, b) => a + b, 0) - 1) < 0.01, "which sum to 1");
    reader.check(reader.tooWide() <= 0, "no wider than the window: " + reader.tooWide());
  )js",
        15);
}

TEST_F(CaptionPageTest, layout_holds) { check_layout(path_); }

}  // namespace
}  // namespace heddle::testing
