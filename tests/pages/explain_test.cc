// The page of heddle explain, driven: the followed query, the cells, the mask.
#include <gtest/gtest.h>

#include "heddle/inspect/pages/page.h"
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
  ASSERT_EQ(run_heddle({"explain", "--scores", "112 96; 0 0", "--divide", "8", "--v", "1; 2",
                        "--page", path})
                .exit_code,
            0);
  drive(path, R"js(
    reader.equal(reader.find('[aria-label="query"]').value, "0", "the first query first");
    const cells = () => [...document.querySelectorAll("tbody tr")].map((tr) => [...tr.cells].slice(0, 6).map((c) => c.textContent));
    reader.equal(cells(), [["key 1", "112", "14", "14", "1", "0.8808"], ["key 2", "96", "12", "12", "0.1353", "0.1192"]], "the first");
    reader.check(document.body.textContent.includes("Result: (1.119)"), "its sum");
    const select = reader.find('[aria-label="query"]');
    select.value = "1";
    select.dispatchEvent(new Event("change"));
    await reader.wait();
    reader.equal(cells(), [["key 1", "0", "0", "0", "1", "0.5"], ["key 2", "0", "0", "0", "1", "0.5"]], "the second");
    await reader.key('[data-step="weights"] canvas', "ArrowDown");
    reader.check(reader.tip().includes("query 1, key 1") && reader.tip().includes("0.880797"), reader.tip());
  )js",
        5);
}

TEST_F(ExplainPage, model_shows_twelve_steps_and_the_masks_triangle) {
  const CliResult result = run_heddle(
      {"explain", model(), "--text", "the old man", "--kind", "decoder", "--page", path});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const Window& window : {Window{}, Window{.width = 390, .height = 800, .is_dark = true}}) {
    drive(path, R"js(
    reader.equal(document.querySelectorAll("[data-step] canvas").length, 12, "a picture a step");
    reader.check([...document.querySelectorAll("[data-step] canvas")].every((c) => reader.colors(c) > 2), "all drawn");
    await reader.key('[data-step="mask"] canvas', "ArrowDown");
    reader.check(reader.tip().endsWith("0"), "the first sees itself: " + reader.tip());
    await reader.key('[data-step="mask"] canvas', "ArrowRight");
    reader.check(reader.tip().includes("hidden"), "and not what follows: " + reader.tip());
    const index = [...document.querySelectorAll("nav a")];
    reader.check(index.length === 12 && index.every((a) => document.querySelector(a.getAttribute("href")).dataset.step), "an index of the steps");
    reader.equal(new Set(index.map((a) => Math.round(a.getBoundingClientRect().left))).size, 1, "in one column, where two would meet");
    reader.equal(document.querySelectorAll("[data-export]").length, 2, "saving in one place");
    const saved = async (step, type) => {
      const which = reader.find('[aria-label="what to save"]');
      which.value = step;
      which.dispatchEvent(new Event("change"));
      return reader.saved(`[data-export="${type}"]`);
    };
    reader.equal(JSON.parse((await saved("", "json")).text).length, 12, "all steps");
    const weights = await saved("weights", "json");
    reader.check(weights.name === "weights.json" && JSON.parse(weights.text).values[0][0] === 1, "the first gives all to itself");
    const svg = await saved("q", "svg");
    reader.check(new DOMParser().parseFromString(svg.text, "image/svg+xml").querySelectorAll("rect").length > 7, "cells");
    reader.check(reader.tooWide() <= 0, "no wider than the window: " + reader.tooWide());
  )js",
          11, window);
  }
}

// Queries a and b, keys of two remembered positions, a and b.
inspect::Page page_with_memory() {
  inspect::Page page{.title = "Memory", .data = {}, .scripts = {"explain.js"}};
  const Json keys = Json::Array{"(memory)", "(memory)", "a", "b"}, queries = Json::Array{"a", "b"};
  page.data["note"] = "";
  page.data["queries"] = queries;
  page.data["keys"] = keys;
  page.data["divisor"] = 1;
  const auto add = [&](const std::string& key, const Json& rows, const Json& cols,
                       const std::string& values) {
    Json step = Json::object();
    for (const char* field : {"key", "name", "formula", "text"}) step[field] = key;
    step["rows"] = rows;
    step["cols"] = cols;
    step["values"] = Json::parse(values);
    page.data["steps"].push_back(step);
  };
  add("k", keys, Json::array(), "[[1], [3], [5], [7]]");
  for (const char* key : {"scores", "scaled"}) {
    add(key, queries, keys, "[[1, 2, 0, 9], [0, 1, 2, 3]]");
  }
  add("masked", queries, keys, "[[1, 2, 0, null], [0, 1, 2, 3]]");
  add("weights", queries, keys, "[[0.2, 0.5, 0.3, 0], [0.1, 0.1, 0.3, 0.5]]");
  return page;
}

TEST_F(ExplainPage, memory_is_one_key_until_it_is_unfolded) {
  inspect::write_page(path, page_with_memory());
  drive(path, R"js(
    const cells = () => [...document.querySelectorAll("tbody tr")].map((tr) => [0, 1, 5].map((c) => tr.cells[c].textContent));
    reader.equal(cells(), [["(memory)", "2", "0.7"], ["a", "0", "0.3"], ["b", "9", "0"]], "largest score, sum of weights");
    await reader.key('[data-step="weights"] canvas', "ArrowDown");
    reader.equal(reader.tip(), "a, (memory), sum of 2\n0.7", "in the matrix");
    await reader.key('[data-step="k"] canvas', "ArrowDown");
    reader.equal(reader.tip(), "(memory), column 0, mean of 2\n2", "mean of the keys");
    await reader.click("#fold");
    reader.equal(cells().map((c) => c[0]), ["(memory)", "(memory)", "a", "b"], "each position");
  )js",
        4);
  check_layout(path);
}

}  // namespace
}  // namespace heddle::testing
