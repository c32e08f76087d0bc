// Every page that a command writes, at 1280 and 390 pixels, light and dark: nothing over, beyond,
// cut, faint or small.
#include <gtest/gtest.h>

#include "heddle/inspect/pages/text_pages.h"
#include "tests/cli/language_model.h"
#include "tests/cli/tagger_model.h"
#include "tests/pages/browser.h"

namespace heddle::testing {
namespace {

const std::string kSentence = "the old man beside the harbour reads extraordinarily long books!";

class Layout : public PageTest {
 protected:
  void write(std::vector<std::string> arguments, const std::string& input = "") {
    CliOptions options;
    options.input = input;
    const CliResult result = run_heddle(std::move(arguments), options);
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  // A translator with random weights.
  std::string translator() {
    write_small_model(model_);
    return model_;
  }
  std::string language_model() {
    write_gpt2(model_);
    return model_;
  }

  const std::string model_ = (folder_ / "model").string();
};

TEST_F(Layout, analysis_of_a_translator_holds) {
  write({"analyze", "base", "--length", "128", "--ranks", "4", "--update", "1", "--page", path_});
  check_layout(path_, R"js(
    await reader.click(reader.button("bf16", reader.picker("Numbers in")));
    await reader.layout("bf16");
  )js",
               1);
}

TEST_F(Layout, analysis_of_windows_of_an_image_holds) {
  write({"analyze", "stack", "--image", "28", "--patch", "4", "--window", "7", "--set", "heads=2",
         "--set", "d_model=16", "--measure", "--seconds", "0.05", "--page", path_});
  check_layout(path_);
}

TEST_F(Layout, positions_of_waves_and_of_rotary_angles_hold) {
  write({"positions", "--page", path_});
  check_layout(path_);
  write({"positions", "--kind", "rotary", "--positions", "40", "--width", "16", "--page", path_});
  check_layout(path_);
}

constexpr const char* kViews = R"js(
    for (const name of ["Matrix", "All heads"]) {
      await reader.click(reader.button(name, reader.picker("View")));
      await reader.layout(name);
    }
    await reader.click(reader.button("Lines", reader.picker("View")));
    await reader.hover('#view g[data-side="0"][data-at="2"]');
    await reader.layout("a token chosen");
    await reader.click("#overlay");
    for (const head of [0, 1, 2, 3]) await reader.click(`[data-pick="head${head}"]`);
    await reader.layout("several heads");
  )js";

TEST_F(Layout, attention_of_a_translator_holds) {
  write({"attention", translator(), "--text", kSentence, "--target",
         "der alte Mann am Hafen liest zwei lange Bücher!", "--from", "harbour", "--to", "old",
         "--page", path_});
  check_layout(path_, kViews, 4);
}

TEST_F(Layout, attention_of_a_language_model_holds) {
  write({"attention", language_model(), "--text", "the old man reads two books", "--page", path_});
  check_layout(path_, kViews, 4);
}

TEST_F(Layout, explanation_of_scores_holds) {
  write({"explain", "--scores", "112 96; 0 0", "--divide", "8", "--v", "1; 2", "--page", path_});
  check_layout(path_);
}

TEST_F(Layout, explanation_of_a_model_holds) {
  write({"explain", translator(), "--text", kSentence, "--kind", "encoder", "--page", path_});
  check_layout(path_);
}

constexpr const char* kSteps = R"js(
    for (let i = 0; i < 4; ++i) await reader.click(reader.button("next"));
    await reader.layout("after four steps");
  )js";

TEST_F(Layout, steps_of_a_translation_hold) {
  write({"translate", translator(), "--beam", "4", "--max-length", "12", "--page", path_},
        kSentence + "\n");
  check_layout(path_, kSteps, 1);
}

TEST_F(Layout, steps_of_a_text_hold) {
  write({"generate", language_model(), "--prompt", "the old man", "--beam", "3", "--max-new-tokens",
         "8", "--page", path_});
  check_layout(path_, kSteps, 1);
}

// --- texts
// ------------------------------------------------------------------------------------------

const std::string kTexts = std::string(kFixtures) + "/texts/";

TEST_F(Layout, filled_masks_hold) {
  write({"fill", kTexts + "fill", "--page", path_}, "the [MASK] fox & <b>\n[MASK] or [MASK]\n");
  check_layout(path_);
}

TEST_F(Layout, classes_of_texts_hold) {
  write({"classify", kTexts + "classify", "--page", path_}, "the fox\nlow\nlower lower\n");
  check_layout(path_);
}

TEST_F(Layout, classes_of_words_hold) {
  write_tagger(model_);
  write({"classify", model_, "--page", path_},
        "the fox\nlow\n\nlower lower fox the low lowest newest fox the fox the low lower\n");
  check_layout(path_);
}

TEST_F(Layout, similarity_of_texts_holds) {
  write({"embed", kTexts + "encoder", "--page", path_},
        "the fox\nlow\nan extraordinarily long text\nfox\nlower\nlow fox\n\n");
  check_layout(path_);
}

TEST_F(Layout, losses_of_tokens_hold) {
  std::string text;
  for (const std::string& line : small_corpus()) text += line + "\n";
  write_file(folder_ / "text", text.substr(0, 400));
  write({"eval", language_model(), "--data", (folder_ / "text").string(), "--page", path_});
  check_layout(path_);
}

TEST_F(Layout, masked_tokens_hold) {
  std::string text;
  for (int i = 0; i < 30; ++i) text += "the quick fox jumps over the lazy dog\n";
  write_file(folder_ / "text", text);
  write({"eval", kTexts + "fill", "--data", (folder_ / "text").string(), "--page", path_});
  check_layout(path_);
}

TEST_F(Layout, confusion_matrix_holds) {
  std::string rows = "text\tlabel\n";
  for (int i = 0; i < 30; ++i) {
    rows += (i % 2 == 0 ? "the fox\t" : "low\t") +
            std::string(i % 3 == 0   ? "good"
                        : i % 3 == 1 ? "bad"
                                     : "neutral") +
            "\n";
  }
  write_file(folder_ / "texts.tsv", rows);
  write({"eval", kTexts + "classify", "--data", (folder_ / "texts.tsv").string(), "--page", path_});
  check_layout(path_);
}

// 77 classes with names as BANKING77 has them, each taken for the next now and then.
TEST_F(Layout, confusion_matrix_of_77_long_names_holds) {
  std::vector<std::string> labels;
  std::vector<int32_t> truths, answers;
  for (int i = 0; i < 77; ++i) {
    labels.push_back(fmt::format("balance_not_updated_after_bank_transfer_{}", i));
    for (const int answer : {i, i, (i + 1) % 77}) {
      truths.push_back(i);
      answers.push_back(answer);
    }
  }
  inspect::write_page(
      path_, inspect::confusion_page({.model = "RUN", .file = "test.csv", .summary = ""}, labels,
                                     "text", truths, answers, {}));
  check_layout(path_, R"js(
    const written = [], fillText = CanvasRenderingContext2D.prototype.fillText;
    CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) { written.push(text); fillText.call(this, text, ...rest); };
    await reader.key("canvas", "ArrowDown");
    reader.equal(written.filter((t) => t.includes("…")), [], "no label is cut");
    reader.check(written.includes("1"), "columns go by numbers: " + written.slice(0, 3));
    reader.equal(written.some((t) => t.startsWith("77  balance")), innerWidth > 600, "rows by names where there is room");
  )js",
               3);
}

TEST_F(Layout, translations_of_lines_hold) {
  write_file(folder_ / "src", "the old man\nthe book\n" + kSentence + "\n");
  write_file(folder_ / "ref", "der alte Mann\ndas Buch\nder alte Mann am Hafen liest!\n");
  write({"eval", translator(), "--src", (folder_ / "src").string(), "--ref",
         (folder_ / "ref").string(), "--page", path_});
  check_layout(path_);
}

}  // namespace
}  // namespace heddle::testing
