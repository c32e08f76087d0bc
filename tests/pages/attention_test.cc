// The page of heddle attention, driven: layers, heads, words, views, colours, saving, long texts.
#include <gtest/gtest.h>

#include "tests/cli/model_fixture.h"
#include "tests/pages/browser.h"

namespace heddle::testing {
namespace {

class AttentionPage : public ModelFixture {
 protected:
  TempDir folder;
  const std::string path = (folder / "page.html").string();

  void write(std::vector<std::string> flags = {}) {
    flags.insert(flags.begin(), {"attention", model(), "--text", "the old man reads two books!",
                                 "--target", "der alte Mann liest zwei Bücher!", "--page", path});
    const CliResult result = run_heddle(flags);
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
};

TEST_F(AttentionPage, layers_and_heads_are_picked_by_clicks_and_keys) {
  write();
  drive(path, R"js(
    const title = () => [...document.querySelectorAll("h2")][0].textContent;
    reader.check(title().startsWith("Cross, layer"), "it opens with cross attention: " + title());
    await reader.click(reader.button("Encoder", reader.picker("Attention")));
    await reader.click(reader.button("1", reader.picker("Layer")));
    await reader.click(reader.find('[data-pick="head3"]'));
    reader.equal(title(), "Encoder, layer 1, head 3", "clicks");
    await reader.key('[data-pick="head3"]', "ArrowRight");
    reader.equal(title(), "Encoder, layer 1, head 0", "the right arrow goes round the heads");
    reader.equal(document.activeElement.dataset.pick, "head0", "and takes the focus along");
    await reader.key('[data-pick="layer1"]', "ArrowLeft");
    reader.equal(title(), "Encoder, layer 0, head 0", "the left arrow in the layers");
    await reader.key('[data-pick="kind0"]', "ArrowRight");
    reader.equal(title(), "Decoder, layer 0, head 0", "and in the kinds");
    reader.check(reader.tooWide() <= 0, "no wider than the window");
  )js",
        7);
}

TEST_F(AttentionPage, word_that_is_pointed_at_shows_its_lines_and_shares) {
  write({"--layer", "1", "--head", "2"});
  for (const Window& window : {Window{}, Window{.width = 390, .height = 800, .is_dark = true}}) {
    drive(path, R"js(
    await reader.click(reader.button("Encoder", reader.picker("Attention")));
    const lines = () => document.querySelectorAll("#view path").length;
    const before = lines();
    reader.check(before > 8, "lines of all words: " + before);
    await reader.hover('#view g[data-side="0"][data-at="2"]');
    const own = lines(), said = document.querySelector("#view p").textContent;
    reader.check(own <= 8 && own > 0, "lines of one word: " + own);
    reader.check(/^“man” looks at .*\d %/.test(said), said);
    const total = [...document.querySelectorAll("#view path")].reduce((sum, p) => sum + Number(p.dataset.weight), 0);
    reader.check(total > 0.9 && total < 1.001, "its shares sum to 1: " + total);
    await reader.key('#view g[data-side="0"][data-at="2"]', "ArrowDown");
    reader.check(document.querySelector("#view p").textContent.startsWith("“reads” looks at"), "the word below by key");
    await reader.key('#view g[data-side="0"][data-at="3"]', "ArrowRight");
    reader.check(document.querySelector("#view p").textContent.includes("is looked at most by"), "the other side");
    reader.check(reader.tooWide() <= 0, "no wider than the window: " + reader.tooWide());
  )js",
          7, window);
  }
}

TEST_F(AttentionPage, axes_say_which_text_asks_and_which_is_asked) {
  write();
  drive(path, R"js(
    const titles = () => [...document.querySelectorAll("#view svg > text")].slice(0, 2).map((t) => t.textContent);
    reader.equal(titles(), ["target (query)", "source (key)"], "of two texts");
    await reader.click(reader.button("Matrix", reader.picker("View")));
    const said = reader.find("#view canvas").getAttribute("aria-label");
    reader.check(said.includes("rows: target (query)") && said.includes("columns: source (key)"), said);
    const saved = (await reader.saved('[data-export="svg"]')).text;
    reader.check(saved.includes("target (query)") && saved.includes("source (key)"), "in the picture that is saved");
    await reader.click(reader.button("Encoder", reader.picker("Attention")));
    await reader.click(reader.button("Lines", reader.picker("View")));
    reader.equal(titles(), ["query", "key"], "of one text");
  )js",
        4);
}

TEST_F(AttentionPage, heads_keep_their_grid_on_a_phone) {
  write();
  drive(path, R"js(
    await reader.click(reader.button("All heads", reader.picker("View")));
    const at = (layer, head) => reader.find(`#view button[aria-label="layer ${layer}, head ${head}"]`).getBoundingClientRect();
    for (const head of [1, 2, 3]) {
      reader.check(at(0, head).top === at(0, 0).top && at(0, head).left > at(0, head - 1).left, `head ${head} beside the one before it`);
      reader.equal(at(1, head).left, at(0, head).left, `head ${head} of two layers`);
    }
    reader.check(at(1, 0).top > at(0, 0).top, "a row a layer");
  )js",
        7, {.width = 390, .height = 800});
}

TEST_F(AttentionPage, views_and_colours_change_and_the_matrix_shows_values) {
  write();
  drive(path, R"js(
    await reader.click(reader.button("Decoder", reader.picker("Attention")));
    await reader.click(reader.button("Matrix", reader.picker("View")));
    reader.check(reader.colors("#view canvas") > 8, "the matrix is drawn");
    await reader.key("#view canvas", "ArrowDown");
    await reader.key("#view canvas", "ArrowRight");
    reader.check(reader.tip().includes("(start) → der") && reader.tip().includes("hidden by the mask"), reader.tip());
    await reader.key("#view canvas", "ArrowLeft");
    reader.check(reader.tip().includes("(start) → (start)") && reader.tip().includes("100.0 %"), reader.tip());
    await reader.click('[data-pick="head0"]');
    document.getElementById("overlay").click();
    await reader.click('[data-pick="head1"]');
    await reader.click('[data-pick="head2"]');
    reader.equal(document.querySelectorAll('[aria-label="Head"] [aria-pressed="true"]').length > 1, true, "several heads");
    await reader.key("#view canvas", "ArrowDown");
    reader.check(reader.tip().split("\n").length >= 3, "a value for each: " + reader.tip());
    await reader.click(reader.button("All heads", reader.picker("View")));
    reader.equal(document.querySelectorAll("#view button canvas").length, 8, "a picture for each head of the kind");
    await reader.click('#view button[aria-label="layer 0, head 3"]');
    reader.check(reader.picker("View").querySelector('[aria-checked="true"]').textContent === "Lines", "picking one shows it large");
    await reader.click("#theme");
    await reader.click(reader.button("tokens", reader.picker("Units")));
    reader.check(document.querySelectorAll('#view g[data-side="0"]').length > 8, "tokens");
  )js",
        8);
}

TEST_F(AttentionPage, heads_are_ranked_for_two_words_and_what_is_shown_is_saved) {
  write({"--from", "man", "--to", "old"});
  drive(path, R"js(
    const shares = () => [...document.querySelectorAll("tbody tr td:nth-child(2)")].map((td) => parseFloat(td.textContent.replace("< ", "")));
    reader.check(document.querySelector("thead").textContent.includes("man → old"), "the words asked for");
    reader.check(shares().filter((x) => x >= 0).every((x, i, all) => i === 0 || all[i - 1] >= x), "the strongest first");
    const [from, to] = document.querySelectorAll("select");
    from.value = "Mann"; to.value = "old";
    to.dispatchEvent(new Event("change"));
    await reader.wait();
    reader.check(document.querySelector("tbody tr").textContent.startsWith("Cross"), "only cross attention goes from Mann to old");
    await reader.key("tbody tr:nth-child(2)", "Enter");
    const chosen = document.querySelector('tbody tr[aria-selected="true"] td').textContent;
    const saved = await reader.saved('[data-export="json"]'), json = JSON.parse(saved.text), head = json.heads[0];
    reader.equal(`Cross, layer ${head.layer}, head ${head.head}`, chosen, "the head that was picked");
    reader.equal(head.queries, ["der", "alte", "Mann", "liest", "zwei", "Bücher", "!", "(end)"], "its words");
    reader.check(head.weights.every((row) => Math.abs(row.reduce((a, b) => a + b, 0) - 1) < 2e-3), "rows sum to 1");
    const picture = await reader.saved('[data-export="svg"]');
    const svg = new DOMParser().parseFromString(picture.text, "image/svg+xml");
    reader.check(svg.querySelectorAll("path").length > 0 && !picture.text.includes("var("), "a picture that stands alone");
  )js",
        7);
}

TEST_F(AttentionPage, text_of_4096_tokens_opens_small_and_zooms) {
  TransformerConfig c = small_config(shared_tokenizer().vocab_size());
  c.max_position_embeddings = 5000;
  const SmallModel m(c);
  save_model((folder / "long").string(), *m.made, m.parameters, {.tokenizer = &shared_tokenizer()});
  std::string text;
  for (int i = 0; i < 682; ++i) text += "old man ";  // 6 tokens
  const CliResult result =
      run_heddle({"attention", (folder / "long").string(), "--text", text, "--target", "Mann",
                  "--layer", "1", "--head", "2", "--no-importance", "--page", path});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_LT(std::filesystem::file_size(path), 4u << 20);
  drive(path, R"js(
    await reader.click(reader.button("Encoder", reader.picker("Attention")));
    reader.check(document.querySelectorAll("*").length < 3500, "a part of the words at a time: " + document.querySelectorAll("*").length);
    await reader.click(reader.button("Matrix", reader.picker("View")));
    const started = performance.now();
    await reader.click(reader.button("+"));
    reader.check(performance.now() - started < 5000, "it is drawn quickly");
    reader.check(reader.colors("#view canvas") > 8, "it is drawn");
    await reader.hover("#view canvas", 0.5, 0.5);
    reader.check(/(old|man) → (old|man)/.test(reader.tip()), reader.tip());
    reader.check(heddle.data.sides[0].tokens.length > 4000, "tokens: " + heddle.data.sides[0].tokens.length);
    await reader.click(reader.button("All heads", reader.picker("View")));
    reader.equal(document.querySelectorAll("#view button canvas").length, 1, "only the head that was asked for");
  )js",
        6);
}

}  // namespace
}  // namespace heddle::testing
