// The page of heddle translate --page, driven: steps, beginnings, likely tokens.
#include <gtest/gtest.h>

#include "heddle/inspect/pages/page.h"
#include "tests/cli/model_fixture.h"
#include "tests/pages/browser.h"

namespace heddle::testing {
namespace {

class DecodingPage : public ModelFixture {};

TEST_F(DecodingPage, steps_are_walked_by_buttons_tree_and_tokens) {
  const TempDir folder;
  const std::string path = (folder / "page.html").string();
  const CliResult result =
      run_heddle({"translate", model(), "--beam", "3", "--max-length", "6", "--page", path},
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

// What a node of the tree is told by.
Json node(int64_t parent, int64_t step, const std::string& token, double score = 0) {
  Json json = Json::object();
  json["parent"] = parent;
  json["step"] = step;
  json["token"] = token;
  json["log_p"] = score;
  json["score"] = score;
  json["is_ended"] = score < 0;
  json["next"] = Json::array();
  json["attention"] = "";
  return json;
}

TEST_F(DecodingPage, translations_that_read_alike_show_their_tokens) {
  const TempDir folder;
  const std::string path = (folder / "page.html").string();
  inspect::Page page{.title = "Steps", .data = {}, .scripts = {"decoding.js"}};
  page.data["source"] = Json::Array{"Where", "(end)"};
  page.data["source_text"] = "Where";
  page.data["text"] = "Bahnhof";
  page.data["layer"] = 3;
  page.data["best"] = Json::Array{0, 1, 4};
  page.data["nodes"] =
      Json::Array{node(-1, 0, "(start)"), node(0, 1, " Bahnhof"),  node(0, 1, " Bahn"),
                  node(2, 2, "hof"),      node(1, 2, "(end)", -1), node(3, 3, "(end)", -2),
                  node(0, 1, " Bahn!"),   node(6, 2, "(end)", -3)};
  inspect::write_page(path, page);
  drive(path, R"js(
    const tokens = [...document.querySelectorAll(".tokens")].map((e) => e.textContent);
    reader.equal(tokens, ["Bahnhof", "Bahn · …hof"], "of the two that read alike");
    reader.check(document.body.textContent.includes("segmentation"), "and why");
    reader.check(document.body.textContent.includes("decoder's layer 3, counted from 0"), "the layer of the attention");
  )js",
        3);
}

}  // namespace
}  // namespace heddle::testing
