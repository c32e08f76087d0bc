// The pages of heddle fill, classify and embed, driven: tokens put into texts, lists, the heat map.
#include <gtest/gtest.h>

#include "tests/cli/tagger_model.h"
#include "tests/pages/browser.h"
#include "tests/support/cli_runner.h"

namespace heddle::testing {
namespace {

class TextPage : public PageTest {
 protected:
  void write(const std::string& command, const std::string& input) {
    CliOptions options;
    options.input = input;
    const CliResult result = run_heddle(
        {command, std::string(kFixtures) + "/texts/" + (command == "embed" ? "encoder" : command),
         "--page", path_},
        options);
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
};

TEST_F(TextPage, token_that_is_picked_stands_in_the_text) {
  write("fill", "the [MASK] fox & <b>\n[MASK] or [MASK]\n");
  drive_both(R"js(
    const sentence = () => reader.find("#sentence").textContent, bars = () => document.querySelectorAll("table.bars");
    const tokens = (m) => [...bars()[m].rows].map((r) => r.cells[0].textContent);
    reader.equal(sentence(), `the ${tokens(0)[0]} fox & <b>`, "the likeliest token first");
    reader.equal(tokens(0).length, 5, "five tokens");
    await reader.click(bars()[0].rows[2]);
    reader.equal(sentence(), `the ${tokens(0)[2]} fox & <b>`, "the picked one");
    await reader.key(bars()[0].rows[1], "Enter");
    reader.equal(sentence(), `the ${tokens(0)[1]} fox & <b>`, "by keyboard");
    reader.check(document.activeElement === bars()[0].rows[1], "focus stays");
    await reader.key('[aria-label="texts"] tr[tabindex="0"]', "ArrowDown");
    reader.equal(bars().length, 2, "two masks in the second text");
    reader.equal(sentence(), `${tokens(0)[0]} or ${tokens(1)[0]}`, "both filled");
    reader.check(reader.tooWide() <= 0, "no wider than the window: " + reader.tooWide());
    reader.equal(JSON.parse((await reader.saved('[data-export="json"]')).text).texts.length, 2, "saved");
  )js",
             9);
}

TEST_F(TextPage, classes_of_words_filter_texts_and_mark_words) {
  const std::string model = (folder_ / "tagger").string();
  write_tagger(model);
  CliOptions options;
  options.input = "the fox\nlow\nthe lower fox\n\n";
  ASSERT_EQ(run_heddle({"classify", model, "--page", path_}, options).exit_code, 0);
  drive_both(R"js(
    const rows = () => [...reader.find('[aria-label="texts"] tbody').rows], d = heddle.data;
    reader.equal(rows().length, 4, "all texts");
    const words = d.texts.flatMap((t) => t.words), classes = [...reader.find('[aria-label="words of each class"]').rows];
    reader.equal(classes.reduce((sum, r) => sum + Number(r.cells[2].textContent), 0), words.length, "each word has one class");
    reader.equal([...document.querySelectorAll('[aria-label="texts"] strong.marked')].length, words.filter((w) => d.labels[w[1]] !== "O").length, "marked");
    const name = classes[0].cells[0].textContent;
    await reader.key(classes[0], "Enter");
    reader.equal(rows().length, d.texts.filter((t) => t.words.some((w) => d.labels[w[1]] === name)).length, "the texts with such words");
    await reader.click(reader.button("× " + name));
    await reader.click(rows()[2]);
    const bars = [...reader.find('table[aria-label="words"]').rows];
    reader.equal(bars.map((r) => r.cells[0].textContent), d.texts[2].words.map((w) => `${w[0]} ${d.labels[w[1]]}`), "words and classes");
    await reader.click(rows()[3]);
    reader.equal(reader.find("#text").textContent, "", "a blank text has no words");
    reader.check(reader.tooWide() <= 0, "no wider than the window: " + reader.tooWide());
  )js",
             7);
}

TEST_F(TextPage, classes_filter_texts_and_texts_show_their_classes) {
  write("classify", "the fox\nlow\nthe the\nlower lower\nfox\n");
  drive_both(R"js(
    const rows = () => [...reader.find('[aria-label="texts"] tbody').rows], text = () => reader.find("#text").textContent;
    reader.equal(rows().length, 5, "all texts");
    reader.equal(text(), "the fox", "the first is shown");
    const classes = [...reader.find('[aria-label="texts of each class"]').rows];
    reader.equal(classes.reduce((sum, r) => sum + Number(r.cells[2].textContent), 0), 5, "each text has one class");
    const name = classes[0].cells[0].textContent, count = Number(classes[0].cells[2].textContent);
    await reader.key(classes[0], "Enter");
    reader.check(rows().length === count && rows().every((r) => r.cells[1].textContent === name), "the texts of the class");
    await reader.click(reader.button("× " + name));
    reader.equal(rows().length, 5, "all again");
    const search = reader.find('input[type="search"]');
    search.value = "LOWER";
    search.dispatchEvent(new Event("input"));
    await reader.wait();
    reader.equal([rows().length, text()], [1, "lower lower"], "search");
    const bars = [...reader.find('table[aria-label="classes"]').rows];
    reader.equal([bars.length, bars[0].cells[0].textContent], [3, rows()[0].cells[1].textContent], "its classes");
    search.value = "nowhere";
    search.dispatchEvent(new Event("input"));
    await reader.wait();
    reader.check(document.body.textContent.includes("No text fits.") && !document.querySelector("#text"), "nothing found");
    reader.check(reader.tooWide() <= 0, "no wider than the window: " + reader.tooWide());
  )js",
             9);
}

TEST_F(TextPage, similarity_is_read_from_map_and_list) {
  write("embed", "the fox\nlow\nthe fox\n\n");
  drive_both(R"js(
    const text = () => reader.find("#text").textContent, near = () => [...reader.find('[aria-label="nearest texts"]').rows];
    reader.check(reader.colors("canvas") > 2, "the map is drawn");
    reader.equal([text(), near()[0].cells[0].textContent, near()[0].cells[2].textContent], ["the fox", "the fox", "1.000"], "its double is nearest");
    reader.equal(near().length, 3, "all but itself");
    await reader.key("canvas", "ArrowDown");
    await reader.key("canvas", "ArrowDown");
    reader.check(reader.tip().startsWith("low\nthe fox\ncosine "), reader.tip());
    await reader.key("canvas", "Enter");
    reader.equal(text(), "low", "picked in the map");
    await reader.click(near()[0]);
    reader.check(text() !== "low", "and on to its nearest");
    await reader.click(reader.button("alike together"));
    await reader.key("canvas", "ArrowRight");
    await reader.key("canvas", "ArrowLeft");
    reader.equal(reader.tip(), "the fox\nthe fox\ncosine 1.000", "its double comes second");
    const saved = JSON.parse((await reader.saved('[data-export="json"]')).text);
    reader.check(saved.cosines[0][2] === 1 && saved.cosines[0][1] === saved.cosines[1][0], "all cosines");
    reader.check(reader.tooWide() <= 0, "no wider than the window: " + reader.tooWide());
  )js",
             9);
  write("embed", "alone\n");
  drive(
      path_,
      R"js(reader.check(document.body.textContent.includes("nothing to compare"), "one text");)js",
      1);
}

}  // namespace
}  // namespace heddle::testing
