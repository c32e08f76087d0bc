// The pages of heddle eval, driven: the text by its losses, masked tokens, the confusion matrix.
#include <gtest/gtest.h>

#include "tests/cli/language_model.h"
#include "tests/pages/browser.h"

namespace heddle::testing {
namespace {

class EvalPage : public PageTest {
 protected:
  void write(const std::string& model, const std::string& flag, const std::string& name,
             const std::string& text) {
    const std::string file = (folder_ / name).string();
    write_file(file, text);
    const CliResult result = run_heddle({"eval", model, flag, file, "--page", path_});
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
};

TEST_F(EvalPage, tokens_are_shaded_and_read_by_pointer_and_keys) {
  const std::string model = (folder_ / "model").string();
  write_gpt2(model);
  std::string text;
  for (const std::string& line : small_corpus()) text += line + "\n";
  write(model, "--data", "text", text.substr(0, 400));
  drive_both(R"js(
    const spans = [...document.querySelectorAll("[data-i]")], box = reader.find('[aria-label^="the text, token by token"]');
    reader.equal(spans.length, heddle.data.loss.length + 1, "a span per token");
    const color = (s) => getComputedStyle(s).backgroundColor, loss = (s) => heddle.data.loss[s.dataset.i - 1];
    const sorted = spans.slice(1).sort((a, b) => loss(a) - loss(b));
    reader.check(color(sorted[0]) !== color(sorted[sorted.length - 1]), "cheap and dear look different");
    await reader.hover(spans[3]);
    reader.check(reader.tip().includes(`loss ${heddle.data.loss[2].toFixed(2)} nats`), reader.tip());
    await reader.key(box, "ArrowRight");
    reader.check(reader.tip().includes(`loss ${heddle.data.loss[3].toFixed(2)} nats`), "the next: " + reader.tip());
    await reader.key(box, "Home");
    reader.check(reader.tip().includes("the first token: not predicted"), reader.tip());
    const rows = [...reader.find('[aria-label="tokens with the highest loss"] tbody').rows];
    reader.equal(Number(rows[0].cells[3].textContent), Number(Math.max(...heddle.data.loss).toFixed(2)), "the highest first");
    await reader.click(rows[1]);
    reader.check(Number(document.querySelector(".token.here").dataset.i) > 0, "it is shown in the text");
    reader.check(reader.find("#summary").textContent.startsWith("perplexity "), "the figures");
    reader.check(document.querySelector(".chart path"), "the curve");
    reader.check(reader.tooWide() <= 0, "no wider than the window: " + reader.tooWide());
  )js",
             10);
}

TEST_F(EvalPage, lines_are_sorted_by_agreement_and_compared_word_by_word) {
  const std::string model = (folder_ / "model").string(), source = (folder_ / "source").string(),
                    reference = (folder_ / "reference").string();
  write_small_model(model);
  write_file(source, "the old man\na small dog\nmy sister\n");
  CliOptions options;
  options.input = "the old man\n";
  const std::string same = run_heddle({"translate", model, "--max-length", "10"}, options)
                               .out;  // the first line is right
  write_file(reference, same + "ein kleiner Hund\nmeine Schwester\n");
  const CliResult result = run_heddle(
      {"eval", model, "--src", source, "--ref", reference, "--max-length", "10", "--page", path_});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  drive_both(R"js(
    const rows = () => [...reader.find('[aria-label="lines"] tbody').rows], scores = () => rows().map((r) => Number(r.cells[2].textContent));
    reader.check(scores()[0] <= scores()[1] && scores()[1] <= scores()[2], "worst first: " + scores());
    reader.check(document.querySelectorAll("#line .missing").length > 0, "the worst has other words");
    await reader.click(reader.button("as given"));
    reader.equal(scores()[0], 100, "the first line is its reference");
    reader.equal(document.querySelectorAll("#line .missing").length, 0, "and nothing is marked");
    const ranges = [...reader.find('[aria-label="lines by chrF2"]').rows];
    reader.equal(ranges.reduce((sum, r) => sum + Number(r.cells[2].textContent), 0), 3, "each line is in one range");
    await reader.click(ranges[9]);
    reader.equal(scores().filter((x) => x < 90), [], "the best range");
    reader.check(reader.tooWide() <= 0, "no wider than the window: " + reader.tooWide());
  )js",
             7);
}

TEST_F(EvalPage, masked_tokens_are_filtered_by_right_and_wrong) {
  std::string text;
  for (int i = 0; i < 30; ++i) text += "the quick fox jumps over the lazy dog\n";
  write(std::string(kFixtures) + "/texts/fill", "--data", "text", text);
  drive_both(R"js(
    const rows = () => [...reader.find('[aria-label="masked tokens"] tbody').rows], all = heddle.data.questions;
    reader.equal(rows().length, Math.min(200, all.length), "all");
    const show = (name) => reader.click(reader.button(name, reader.picker("Show")));
    await show("wrong");
    reader.equal(rows().length, Math.min(200, all.filter((q) => !q.is_right).length), "wrong ones");
    reader.check(rows().every((r) => !r.cells[1].textContent.startsWith("✓")), "none is right");
    await show("right");
    reader.equal(rows().length, all.filter((q) => q.is_right).length, "right ones");
    await show("all");
    reader.check(reader.find("tbody strong.marked").textContent.length > 0, "the token is marked");
    reader.check(reader.tooWide() <= 0, "no wider than the window: " + reader.tooWide());
  )js",
             6);
}

TEST_F(EvalPage, cell_and_class_list_their_wrong_texts) {
  std::string rows = "text\tlabel\n";
  const std::vector<std::string> texts = {"the fox", "low", "lower lower", "fox", "the the low"};
  for (int i = 0; i < 30; ++i) {
    rows += texts[i % 5] + "\t" + (i % 3 == 0 ? "good" : i % 3 == 1 ? "bad" : "neutral") + "\n";
  }
  write(std::string(kFixtures) + "/texts/classify", "--data", "texts.tsv", rows);
  drive_both(R"js(
    const rows = () => [...reader.find('[aria-label="wrong texts"] tbody').rows], d = heddle.data;
    const sum = (cells) => cells.reduce((s, c) => s + c[2], 0), wrong = d.cells.filter((c) => c[0] !== c[1]);
    reader.equal([sum(d.cells), rows().length], [30, sum(wrong)], "all wrong ones");
    reader.check(reader.colors("canvas") > 2, "the matrix is drawn");
    await reader.key("canvas", "ArrowDown");
    reader.check(/of \d+ texts/.test(reader.tip()), reader.tip());
    const [t, a, count] = wrong[0];
    const used = [...new Set(d.cells.flatMap((c) => [c[0], c[1]]))].sort();
    for (let i = 0; i < used.indexOf(t); ++i) await reader.key("canvas", "ArrowDown");
    for (let i = 0; i < used.indexOf(a); ++i) await reader.key("canvas", "ArrowRight");
    reader.check(reader.tip().startsWith(`${d.labels[t]} taken for ${d.labels[a]}\n${count} of 10 texts`), reader.tip());
    await reader.key("canvas", "Enter");
    reader.check(rows().length === count && rows().every((r) => r.cells[1].textContent === d.labels[t]), "its texts");
    reader.equal(document.querySelectorAll('table[aria-label="answer and truth"] tr').length, 2, "the two probabilities");
    await reader.click(reader.button("by name"));
    const classes = [...reader.find('table[aria-label="classes"] tbody').rows];
    reader.equal(classes.map((r) => r.cells[0].textContent), used.map((c) => d.labels[c]).sort(), "sorted");
    await reader.key(classes[0], "Enter");
    const name = classes[0].cells[0].textContent;
    reader.equal(rows().length, sum(wrong.filter((c) => [d.labels[c[0]], d.labels[c[1]]].includes(name))), "of one class");
    reader.check(reader.tooWide() <= 0, "no wider than the window: " + reader.tooWide());
  )js",
             9);
}

}  // namespace
}  // namespace heddle::testing
