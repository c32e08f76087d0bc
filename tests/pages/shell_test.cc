// The parts that all pages share, driven in a browser: theme, picker, heat map, curves, saving.
#include <gtest/gtest.h>

#include "heddle/inspect/pages/page.h"
#include "tests/pages/browser.h"
#include "tests/support/cli_runner.h"

namespace heddle::testing {
namespace {

class Shell : public ::testing::Test {
 protected:
  TempDir folder;
  const std::string path = (folder / "page.html").string();

  void SetUp() override {
    inspect::Page page{.title = "Shell", .scripts = {}};
    page.data["packed"] = inspect::pack_weights({0, 0.25, 1});
    inspect::write_page(path, page);
  }
};

TEST_F(Shell, theme_follows_the_system_and_the_button) {
  const std::string steps = R"js(
    const root = document.documentElement;
    const before = root.dataset.theme, paper = heddle.color("paper");
    reader.equal(before, WANTED, "the system's theme");
    await reader.click("#theme");
    reader.check(root.dataset.theme !== before, "the button switches");
    reader.check(heddle.color("paper") !== paper, "and the colours with it");
  )js";
  const auto with = [&](const std::string& wanted) {
    std::string text = steps;
    return text.replace(text.find("WANTED"), 6, "\"" + wanted + "\"");
  };
  drive(path, with("light"), 3);
  drive(path, with("dark"), 3, {.is_dark = true});
}

TEST_F(Shell, picker_is_moved_by_clicks_and_by_keys) {
  drive(path, R"js(
    const seen = [];
    const picker = heddle.picker({label: "Layer", items: [{name: "a"}, {name: "b"}, {name: "c"}],
                                  chosen: 1, onChange: (i) => seen.push(i)});
    heddle.main.append(picker.element);
    await reader.click(reader.button("c"));
    await reader.key(picker.buttons[2], "ArrowRight");
    reader.equal(document.activeElement.textContent, "a", "the focus goes round");
    await reader.key(picker.buttons[0], "End");
    await reader.key(picker.buttons[2], "x");
    reader.equal(seen, [2, 0, 2], "choices");
    reader.equal(picker.buttons.map((b) => b.tabIndex), [-1, -1, 0], "one stop for Tab");
  )js",
        3);
}

TEST_F(Shell, heat_map_shows_values_to_pointer_and_keys) {
  drive(path, R"js(
    const map = heddle.heatMap({rows: 3, cols: 3, value: (i, j) => (j > i ? NaN : (i + j) / 4),
      rowLabel: (i) => "r" + i, colLabel: (j) => "c" + j});
    heddle.main.append(map.element);
    await reader.wait(200);
    const canvas = reader.find("canvas");
    reader.check(reader.colors(canvas) > 3, "it is drawn");
    await reader.hover(canvas, 0.5, 0.97);
    reader.check(/^r2 → c[12]: /.test(reader.tip()), "the last row: " + reader.tip());
    await reader.leave(canvas);
    reader.equal(reader.tip(), "", "the tooltip goes");
    map.redraw({rows: 2, cols: 2});
    await reader.key(canvas, "ArrowDown");
    reader.equal(reader.tip(), "r0 → c0: 0", "keys begin at the first cell");
    await reader.key(canvas, "ArrowRight");
    reader.equal(reader.tip(), "r0 → c1: hidden", "and go right");
    await reader.key(canvas, "Escape");
    reader.equal(reader.tip(), "", "Escape takes the tooltip away");
    const svg = new DOMParser().parseFromString(map.svg(), "image/svg+xml");
    reader.equal(svg.querySelectorAll("rect").length, 4, "a rectangle a cell");
  )js",
        7);
}

TEST_F(Shell, heat_map_of_4096_by_4096_looks_at_pixels_only) {
  drive(path, R"js(
    let looks = 0;
    const map = heddle.heatMap({rows: 4096, cols: 4096, value: (i, j) => { ++looks; return i === j ? 1 : 0; },
      block: (i0, i1, j0, j1) => { ++looks; return i0 < j1 && j0 < i1 ? 1 : 0; }});
    heddle.main.append(map.element);
    await reader.wait(200);
    reader.check(looks > 10000 && looks < 4e6, `looks: ${looks}`);
    reader.check(document.querySelectorAll("*").length < 80, "no node a cell");
    await reader.click(reader.button("+"));
    reader.equal([map.view.rows, map.view.cols], [2048, 2048], "closer by two");
    await reader.key("canvas", "0");
    reader.equal(map.view.rows, 4096, "0 shows all");
  )js",
        4);
}

TEST_F(Shell, curves_are_read_and_hidden) {
  drive(path, R"js(
    const chart = heddle.lineChart({title: "loss", xTitle: "update", series: [
      {name: "training", x: [1, 2, 3], y: [4, 2, null]}, {name: "validation", x: [1, 3], y: [5, 3]}]});
    heddle.main.append(chart.element);
    await reader.wait(200);
    reader.equal(chart.svg.querySelectorAll("path[data-series]").length, 2, "two curves");
    await reader.key(chart.svg, "ArrowRight");
    reader.equal(reader.tip(), "update 1\ntraining: 4\nvalidation: 5", "values at 1");
    await reader.hover(chart.svg, 0.99, 0.5);
    reader.equal(reader.tip(), "update 3\ntraining: 2 (at 2)\nvalidation: 3", "values at 3");
    await reader.click(reader.button("training"));
    reader.equal(chart.svg.querySelectorAll("path[data-series]").length, 1, "one is hidden");
    const saved = heddle.svgText(chart.svg);
    reader.check(!saved.includes("var(") && saved.includes("<svg"), "a picture that stands alone");
  )js",
        5);
}

TEST_F(Shell, packed_numbers_and_saved_files_come_out) {
  drive(path, R"js(
    reader.equal([...heddle.unpack16(heddle.data.packed)], [0, 16384, 65535], "packed");
    heddle.main.append(heddle.exportButtons("name", {json: () => ({a: [1, 2]})}));
    const saved = await reader.saved('[data-export="json"]');
    reader.equal(saved.name, "name.json", "its name");
    reader.equal(JSON.parse(saved.text), {a: [1, 2]}, "its text");
    reader.equal([heddle.number(0.88079), heddle.number(-1.2e-7), heddle.number(NaN), heddle.number(12345)],
      ["0.8808", "−1.2e−7", "–", "12,345"], "numbers");
  )js",
        4, {.width = 390, .height = 800});
}

}  // namespace
}  // namespace heddle::testing
