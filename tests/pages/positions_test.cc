// The page of heddle positions, driven in a browser.
#include <gtest/gtest.h>

#include "heddle/inspect/positions.h"
#include "tests/cli/vision_model.h"
#include "tests/pages/browser.h"
#include "tests/support/cli_runner.h"

namespace heddle::testing {
namespace {

class PositionsPage : public ::testing::Test {
 protected:
  TempDir folder;
  const std::string path = (folder / "page.html").string();

  void write(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "positions");
    arguments.insert(arguments.end(), {"--page", path});
    const CliResult result = run_heddle(arguments);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.out, "");
  }
};

TEST_F(PositionsPage, sinusoidal_table_is_read_by_keys_and_shown_as_numbers) {
  write({"--positions", "3", "--width", "4"});
  drive(path, R"js(
    const canvases = document.querySelectorAll("canvas");
    reader.equal(canvases.length, 2, "the table and the similarity");
    reader.check(reader.colors(canvases[0]) > 5, "it is drawn");
    await reader.key(canvases[0], "ArrowDown");
    await reader.key(canvases[0], "ArrowDown");
    reader.equal(reader.tip(), "position 1, column 0 (sin 0)\n0.8415", "the sine of 1");
    const cells = [...document.querySelectorAll("tbody tr")].map((r) => [...r.querySelectorAll("td")].map((c) => c.textContent));
    reader.equal(cells[2], ["0.9093", "−0.4161", "0.0200", "0.9998"], "the last row");
    await reader.key(canvases[1], "ArrowDown");
    reader.check(reader.tip().startsWith("positions 0 and 0, 0 apart\ncosine similarity 1"), reader.tip());
    reader.equal(document.querySelectorAll("path[data-series]").length, 2, "two sines");
    reader.equal(JSON.parse((await reader.saved('[data-export="json"]')).text).values.length, 3, "rows saved");
    reader.check(!heddle.main.textContent.includes("null"), "no stray null");
  )js",
        8);
}

TEST_F(PositionsPage, rotary_shows_cosine_sine_and_angle_on_a_phone) {
  write({"--kind", "rotary", "--positions", "40", "--width", "16"});
  drive(path, R"js(
    const canvas = reader.find("canvas");
    const before = canvas.toDataURL();
    await reader.click(reader.button("angle", reader.picker("Show")));
    reader.check(canvas.toDataURL() !== before, "another picture");
    await reader.key(canvas, "ArrowDown");
    await reader.key(canvas, "ArrowDown");
    reader.check(reader.tip().startsWith("position 1, pair 0\nangle 1 radians = 0.1592 turns\ncosine 0.5403"), reader.tip());
    reader.check(reader.tooWide() <= 0, "no sideways scrolling");
  )js",
        3, {.width = 390, .height = 800, .is_dark = true});
}

TEST_F(PositionsPage, large_tables_are_packed_and_keep_four_digits) {
  write({"--positions", "600", "--width", "128"});
  drive(path, R"js(
    reader.check(heddle.data.packed && !heddle.data.values, "packed");
    const canvas = reader.find("canvas");
    for (let i = 0; i < 3; ++i) await reader.key(canvas, "ArrowDown");
    reader.equal(reader.tip(), "position 2, column 0 (sin 0)\n0.9093", "the sine of 2");
    await reader.click(reader.button("+"));
    reader.check(document.body.textContent.includes("of 600"), "a part is shown");
  )js",
        3);
}

TEST_F(PositionsPage, heads_of_windows_are_pictures_around_their_query) {
  const std::string model = (folder / "swin").string();
  write_vision_model(model, "swin");
  write({model});
  const auto table = inspect::model_positions(model, "", 0);
  const int64_t side = 2 * table.window - 1, right = side * table.window - table.window + 1;
  drive(path,
        fmt::format(R"js(
    const heads = {}, value = (i, j) => heddle.number(heddle.data.values[i * heads + j]);
    const thumbs = [...document.querySelectorAll(".thumbs button")];
    reader.equal(thumbs.length, heads, "one picture a head");
    reader.check(thumbs.every((button) => reader.colors(button.querySelector("canvas")) > 3), "they are drawn");
    reader.equal(thumbs.filter((button) => button.getAttribute("aria-pressed") === "true").length, 1, "one is chosen");
    await reader.click(thumbs.at(-1));
    reader.equal(thumbs.at(-1).getAttribute("aria-pressed"), "true", "the last one");
    const large = reader.find(".heat canvas");
    await reader.key(large, "ArrowDown");
    for (let i = 1; i < {}; ++i) await reader.key(large, "ArrowDown");
    for (let i = 0; i < {}; ++i) await reader.key(large, "ArrowRight");
    const [layer, head] = heddle.data.names.at(-1).split(".");
    reader.equal(reader.tip(), `layer ${{layer}}, head ${{head}}
1 column right: ${{value({}, heads - 1)}}`, "the key beside the query");
    reader.check([...document.querySelectorAll("h2")].every((title) => title.textContent !== "Columns as waves"), "no waves");
    reader.check(reader.tooWide() <= 0, "no sideways scrolling");
  )js",
                    table.columns, table.window, table.window, right),
        7);
}

TEST_F(PositionsPage, none_says_what_it_means) {
  write({"--kind", "none"});
  drive(path, R"js(
    reader.check(document.body.textContent.includes("in another order"), "the meaning");
    reader.equal(document.querySelectorAll("canvas").length, 1, "the table alone");
  )js",
        2);
}

}  // namespace
}  // namespace heddle::testing
