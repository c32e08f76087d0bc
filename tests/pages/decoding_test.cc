// The page of heddle translate --steps, driven: steps, beginnings, likely tokens.
#include <gtest/gtest.h>

#include "tests/cli/model_fixture.h"
#include "tests/pages/browser.h"

namespace heddle::testing {
namespace {

class DecodingPage : public ModelFixture {};

TEST_F(DecodingPage, steps_are_walked_by_buttons_tree_and_tokens) {
  const TempDir folder;
  const std::string path = (folder / "page.html").string();
  const CliResult result =
      run_heddle({"translate", model(), "--beam", "3", "--max-length", "6", "--steps", path},
                 with_input("the old man\n"));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const Window& window : {Window{}, Window{.width = 390, .height = 800, .is_dark = true}}) {
    drive(path, R"js(
    const beginning = () => reader.find("#beginning").textContent, bars = () => document.querySelectorAll('[aria-label="likely next tokens"] tr');
    reader.equal(beginning(), "After 0 tokens: (nothing yet)", "the start");
    reader.equal(bars().length, 10, "ten likely tokens");
    reader.check(reader.button("◂ back").disabled, "nothing before it");
    await reader.click(reader.button("next"));
    reader.check(beginning().startsWith("After 1 token: "), beginning());
    const shares = [...document.querySelectorAll('[aria-label="attention to the source"] td.number')].map((td) => parseFloat(td.textContent.replace("< ", "")));
    reader.check(Math.abs(shares.reduce((a, b) => a + b, 0) - 100) < 2, "attention sums to 100 %: " + shares);
    await reader.key('[data-node][tabindex="0"]', "ArrowLeft");
    reader.equal(beginning(), "After 0 tokens: (nothing yet)", "the arrow goes back to the parent");
    await reader.key('[data-node="0"]', "ArrowRight");
    await reader.key('[data-node][tabindex="0"]', "ArrowDown");
    const other = beginning();
    reader.check(other.startsWith("After 1 token: "), "another beginning: " + other);
    await reader.hover('[data-node="1"]');
    reader.check(reader.tip().includes("log p"), reader.tip());
    await reader.click('[data-node="0"]');
    await reader.click(bars()[0]);
    reader.check(reader.tooWide() <= 0, "no wider than the window: " + reader.tooWide());
    const saved = await reader.saved('[data-export="svg"]');
    reader.check(saved.text.includes("<svg") && !saved.text.includes("var("), "a picture that stands alone");
  )js",
          10, window);
  }
}

}  // namespace
}  // namespace heddle::testing
