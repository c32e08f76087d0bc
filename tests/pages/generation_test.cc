// The page of heddle generate --page, driven: a prompt in place of a source, no attention beside.
#include <gtest/gtest.h>

#include "tests/cli/language_model.h"
#include "tests/pages/browser.h"

namespace heddle::testing {
namespace {

class GenerationPage : public LanguageModelFixture {};

TEST_F(GenerationPage, steps_are_walked_by_buttons_and_tokens) {
  const TempDir folder;
  const std::string path = (folder / "page.html").string();
  const CliResult result = run_heddle({"generate", model(), "--prompt", "the old man", "--beam",
                                       "3", "--max-new-tokens", "6", "--page", path});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const Window& window : {Window{}, Window{.width = 390, .height = 800, .is_dark = true}}) {
    drive(path, R"js(
    const beginning = () => reader.find("#beginning").textContent, bars = () => document.querySelectorAll('[aria-label="likely next tokens"] tr');
    reader.equal(beginning(), "After 0 tokens: (nothing yet)", "the start");
    reader.equal(bars().length, 10, "ten likely tokens");
    reader.check(document.body.textContent.includes("Prompt: the old man"), "the prompt is shown");
    reader.check(!document.querySelector('[aria-label="attention to the source"]'), "there is no source");
    for (let i = 0; i < 6; ++i) await reader.click(reader.button("next"));
    reader.check(beginning().startsWith("After 6 tokens: "), beginning());
    await reader.click(reader.button("next"));
    reader.check(beginning().startsWith("Done: "), beginning());
    reader.check(reader.button("next").disabled, "nothing after it");
    await reader.click('[data-node="0"]');
    await reader.click(bars()[0]);
    reader.check(reader.tooWide() <= 0, "no wider than the window: " + reader.tooWide());
  )js",
          8, window);
  }
}

}  // namespace
}  // namespace heddle::testing
