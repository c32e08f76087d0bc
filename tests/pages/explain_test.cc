// The page of heddle explain, driven: the followed query, the cells, the mask.
#include <gtest/gtest.h>

#include "tests/cli/model_fixture.h"
#include "tests/pages/browser.h"

namespace heddle::testing {
namespace {

class ExplainPage : public ModelFixture {
 protected:
  TempDir folder;
  const std::string path = (folder / "page.html").string();
};

TEST_F(ExplainPage, query_is_followed_from_score_to_weight) {
  ASSERT_EQ(
      run_heddle({"explain", "--scores", "112 96; 0 0", "--divide", "8", "--v", "1; 2", "-o", path})
          .exit_code,
      0);
  drive(path, R"js(
    const cells = () => [...document.querySelectorAll("tbody tr")].map((tr) => [...tr.cells].slice(0, 6).map((c) => c.textContent));
    reader.equal(cells(), [["key 1", "0", "0", "0", "1", "0.5"], ["key 2", "0", "0", "0", "1", "0.5"]], "the last query first");
    const select = reader.find("select");
    select.value = "0";
    select.dispatchEvent(new Event("change"));
    await reader.wait();
    reader.equal(cells(), [["key 1", "112", "14", "14", "1", "0.8808"], ["key 2", "96", "12", "12", "0.1353", "0.1192"]], "the first");
    reader.check(document.body.textContent.includes("Result: (1.119)"), "its sum");
    await reader.key('[data-step="weights"] canvas', "ArrowDown");
    reader.check(reader.tip().includes("query 1, key 1") && reader.tip().includes("0.880797"), reader.tip());
  )js",
        4);
}

TEST_F(ExplainPage, model_shows_twelve_steps_and_the_masks_triangle) {
  const CliResult result =
      run_heddle({"explain", model(), "--source", "the old man", "--kind", "decoder", "-o", path});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const Window& window : {Window{}, Window{.width = 390, .height = 800, .is_dark = true}}) {
    drive(path, R"js(
    reader.equal(document.querySelectorAll("[data-step] canvas").length, 12, "a picture a step");
    reader.check([...document.querySelectorAll("[data-step] canvas")].every((c) => reader.colors(c) > 2), "all drawn");
    await reader.key('[data-step="mask"] canvas', "ArrowDown");
    reader.check(reader.tip().endsWith("0"), "the first sees itself: " + reader.tip());
    await reader.key('[data-step="mask"] canvas', "ArrowRight");
    reader.check(reader.tip().includes("hidden"), "and not what follows: " + reader.tip());
    const saved = await reader.saved('[data-step="weights"] [data-export="json"]');
    reader.check(JSON.parse(saved.text).values[0][0] === 1, "the first gives all to itself");
    const svg = await reader.saved('[data-step="q"] [data-export="svg"]');
    reader.check(new DOMParser().parseFromString(svg.text, "image/svg+xml").querySelectorAll("rect").length > 7, "cells");
    reader.check(reader.tooWide() <= 0, "no wider than the window: " + reader.tooWide());
  )js",
          7, window);
  }
}

}  // namespace
}  // namespace heddle::testing
