// The page of heddle analyze, driven in a browser.
#include <gtest/gtest.h>

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
