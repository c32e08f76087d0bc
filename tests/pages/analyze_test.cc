// The page of heddle analyze, driven in a browser.
#include <gtest/gtest.h>

#include "heddle/base/json/json.h"
#include "tests/pages/browser.h"
#include "tests/support/cli_runner.h"

namespace heddle::testing {
namespace {

std::string write(const TempDir& folder, std::vector<std::string> arguments) {
  const std::string path = (folder / "page.html").string();
  arguments.insert(arguments.begin(), "analyze");
  arguments.insert(arguments.end(), {"--page", path});
  const CliResult result = run_heddle(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "");
  return path;
}

TEST(AnalyzePage, base_model_is_told_step_by_step) {
  const TempDir folder;
  drive(write(folder, {"base", "--length", "128"}), R"js(
    const text = heddle.main.textContent;
    reader.check(text.includes("18,944,000 · 30.0 %"), "words of the encoder's table");
    reader.check(text.includes("8 × 128 × 128"), "a matrix a head");
    reader.check(text.includes("recurrence while n is below d, as here"), "128 is below 512");
    const memory = () => reader.find('[aria-label="training"]').textContent;
    reader.check(memory().includes("9.00 MiB"), "plain attention in f32");
    await reader.click(reader.button("bf16", reader.picker("Numbers in")));
    reader.check(memory().includes("4.50 MiB"), "and in bf16");
    const charts = document.querySelectorAll(".chart svg");
    reader.equal(charts.length, 3, "FLOPs and bytes by length, operations by kind");
    await reader.key(charts[0], "ArrowRight");
    reader.check(reader.tip().startsWith("length 64\nattention: "), reader.tip());
    reader.check(!text.includes("undefined") && !text.includes("NaN"), "no holes");
  )js",
        8);
}

TEST(AnalyzePage, several_ranks_are_a_table_as_printed) {
  const TempDir folder;
  const std::vector<std::string> words = {"tiny",       "--ranks", "4",      "--update", "0.5",
                                          "--exchange", "0.5",     "--link", "125MB/s"};
  std::vector<std::string> printed = words;
  printed.insert(printed.begin(), "analyze");
  const std::string text = run_heddle(printed).out;
  drive(write(folder, words), "const printed = " + Json(text).dump() + ";" + R"js(
    const rows = [...reader.find('[aria-label="ranks"] tbody').rows].map((row) => [...row.cells].map((cell) => cell.textContent));
    reader.equal(rows.length, 3, "1, 2 and 4 ranks");
    reader.equal(rows[0].slice(0, 2).concat(rows[0][6]), ["1", "500.00 ms", "100.0 %"], "of one");
    const lines = printed.split("\n").map((line) => line.trim().replace(/\s+/g, " "));
    reader.check(rows.every((row) => lines.includes(row.join(" "))), "each row is printed too");
    reader.check(document.body.textContent.includes("An update on several ranks over 125MB/s"), "what it is of");
    reader.check(document.body.textContent.includes("t(R) = t(1) / R + exchange"), "how");
  )js",
        5);
}

TEST(AnalyzePage, image_in_windows_with_a_measured_curve_fits_a_phone) {
  const TempDir folder;
  const std::string path =
      write(folder, {"stack", "--image", "28", "--patch", "4", "--window", "7", "--set", "heads=2",
                     "--set", "d_model=16", "--measure", "--seconds", "0.1"});
  drive(path, R"js(
    const charts = document.querySelectorAll(".chart svg");
    reader.equal(charts.length, 2, "formulas and this machine");
    reader.check(heddle.main.textContent.includes("blocks of 49"), "windows of 7 x 7");
    reader.check(reader.tooWide() <= 0, "no sideways scrolling: " + reader.tooWide());
  )js",
        3, {.width = 390, .height = 800, .is_dark = true});
}

}  // namespace
}  // namespace heddle::testing
