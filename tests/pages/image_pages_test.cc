// The pages of images, driven: heads over the image, a clicked cell, roll-out, windows; a cell
// explained; sizes compared; augmentation.
#include <gtest/gtest.h>

#include "heddle/infer/loading/loaded_model.h"
#include "heddle/models/registry.h"
#include "tests/cli/vision_model.h"
#include "tests/pages/browser.h"

namespace heddle::testing {
namespace {

constexpr int kSwinLayers = 4;  // of the fixture: two stages of two blocks

// Each canvas says what it shows, or is left out where its button does.
constexpr const char* kCanvases = R"js(
    reader.equal([...document.querySelectorAll("canvas")].filter((c) => !(c.getAttribute("role") === "img" && c.getAttribute("aria-label")) && !c.hasAttribute("aria-hidden")).length, 0, "canvases without a name");
)js";

class ImagePage : public PageTest {
 protected:
  void write(std::vector<std::string> words) {
    words.insert(words.end(), {"--page", path_});
    const CliResult result = run_heddle(words);
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  std::string model(const std::string& name = "vit") {
    write_vision_model(model_, name);
    return model_;
  }

  const std::string image_ = fixture_image("rgb.png");
  const std::string model_ = (folder_ / "model").string();
};

TEST_F(ImagePage, clicked_cell_shows_where_it_looks) {
  write({"attention", model(), image_});
  drive_both(R"js(
    const title = () => reader.find("#page h2").textContent, query = () => reader.find("#query").textContent;
    reader.equal(query(), "[class]", "it opens with the class token");
    reader.equal(title(), "Layer 1, mean of the heads", "of the last layer");
    await reader.click(reader.button("0", reader.picker("Layer")));
    await reader.click(reader.button("2", reader.picker("Head")));
    reader.equal(title(), "Layer 0, head 2", "a head is picked");
    const canvas = reader.find(".cell-map canvas"), box = canvas.getBoundingClientRect();
    canvas.dispatchEvent(new MouseEvent("click", {clientX: box.left + 0.5 * box.width, clientY: box.top + 0.9 * box.height, bubbles: true}));
    await reader.wait();
    reader.equal(query(), "row 2, column 1", "the cell under the pointer asks");
    reader.check(/row 2, column 1 looks most at row \d, column \d \(\d/.test(reader.find("#view p[aria-live]").textContent), reader.find("#view p[aria-live]").textContent);
    await reader.hover(".cell-map canvas", 0.1, 0.1);
    reader.check(/^row 0, column 0: \d+\.\d %/.test(reader.tip()), "the share of a cell: " + reader.tip());
    await reader.key(".cell-map canvas", "ArrowRight");
    await reader.key(".cell-map canvas", "Enter");
    reader.equal(query(), "row 0, column 1", "by keys too");
    await reader.click("#mass");
    reader.check(/[1-8] of 9 cells have 60 %/.test(reader.find("#view p[aria-live]").textContent), "the cells with most of the weight");
    await reader.click('[data-token="0"]');
    reader.equal(query(), "[class]", "back to the token");
    reader.check(reader.tooWide() <= 0, "no wider than the window");
  )js",
             10);
}

TEST_F(ImagePage, rows_of_heads_and_of_the_roll_out_sum_to_one) {
  write({"attention", model(), image_});
  drive(path_, R"js(
    const sum = async () => JSON.parse((await reader.saved('[data-export="json"]')).text).weights.reduce((a, b) => a + b, 0);
    reader.check(Math.abs(await sum() - 1) < 1e-3, "of the mean");
    await reader.click(reader.button("1", reader.picker("Head")));
    reader.check(Math.abs(await sum() - 1) < 1e-3, "of a head");
    await reader.click(reader.button("Roll-out", reader.picker("View")));
    reader.check(Math.abs(await sum() - 1) < 1e-3, "of the roll-out");
    const before = JSON.parse((await reader.saved('[data-export="json"]')).text).weights;
    await reader.click(reader.button("max", reader.picker("Heads")));
    reader.check(Math.abs(await sum() - 1) < 1e-3, "of the largest heads");
    const largest = JSON.parse((await reader.saved('[data-export="json"]')).text).weights;
    reader.check(JSON.stringify(before) !== JSON.stringify(largest), "which is another");
    await reader.click(reader.button("All heads", reader.picker("View")));
    reader.equal(document.querySelectorAll("#view button canvas").length, 6, "a map for each head");
    reader.check(reader.find("#page .columns canvas").getAttribute("aria-label").endsWith("rgb.png"), "the image");
    await reader.click('#view button[aria-label="layer 0, head 1"]');
    reader.equal(reader.find("#page h2").textContent, "Layer 0, head 1", "which is shown large");
  )js" + std::string(kCanvases),
        9);
}

TEST_F(ImagePage, swin_shows_the_window_of_a_cell_and_what_its_mask_hides) {
  write({"attention", model("swin"), image_});
  drive_both(R"js(
    const calls = heddle.imageAttention.calls;
    reader.check(calls.every((call) => call.isWindowed), "all calls have windows");
    for (const call of calls) {
      const grid = heddle.imageAttention.grids[call.queries], head = heddle.imageAttention.heads.find((h) => h.call === call.index);
      let worst = 0;
      for (let cell = 0; cell < grid.cells; ++cell) {
        const row = heddle.imageAttention.row(head, cell), own = new Set(row.window);
        worst = Math.max(worst, Math.max(...row.weights.map((w, i) => (own.has(i) ? 0 : w))), ...row.tint.map((c) => row.weights[c]));
        if (!own.has(cell)) worst = 1;
      }
      reader.equal(worst, 0, `layer ${call.layer}: nothing outside of the window, nothing hidden`);
    }
    await reader.click(reader.button("Roll-out", reader.picker("View")));
    reader.equal(reader.find("#query").textContent, "the mean of all cells", "there is no class token");
    const weights = JSON.parse((await reader.saved('[data-export="json"]')).text).weights;
    reader.check(Math.abs(weights.reduce((a, b) => a + b, 0) - 1) < 2e-3, "the roll-out through the stages sums to 1");
    reader.check(reader.tooWide() <= 0, "no wider than the window");
  )js",
             4 + kSwinLayers);
}

// Of 3 x 3 cells the first two rows and columns are merged into one: the middle cell is in the
// first.
TEST_F(ImagePage, clicked_cell_of_a_roll_out_asks_for_what_it_was_merged_into) {
  model("swin");
  Json config = Json::load(model_ + "/config.json");
  config["image_size"] = 12, config["patch_size"] = 4, config["window_size"] = 2;
  nn::Parameters parameters(3);
  save_model(model_, *make_model(nn::Scope(parameters), config), parameters);
  write({"attention", model_, image_});
  drive(path_, R"js(
    await reader.click(reader.button("Roll-out", reader.picker("View")));
    const canvas = reader.find(".cell-map canvas"), box = canvas.getBoundingClientRect(), query = () => reader.find("#query").textContent;
    const click = async (x, y) => {
      canvas.dispatchEvent(new MouseEvent("click", {clientX: box.left + x * box.width, clientY: box.top + y * box.height, bubbles: true}));
      await reader.wait();
    };
    await click(0.5, 0.5);
    reader.equal(query(), "row 0, column 0", "the middle");
    await click(0.5, 0.9);
    reader.equal(query(), "row 1, column 0", "below it");
  )js",
        2);
}

TEST_F(ImagePage, attention_holds) {
  write({"attention", model(), image_});
  check_layout(path_, R"js(
    await reader.click(reader.button("1", reader.picker("Head")));
    await reader.layout("a head");
    await reader.click(reader.button("All heads", reader.picker("View")));
    await reader.layout("all heads");
    await reader.click(reader.button("Roll-out", reader.picker("View")));
    await reader.layout("roll-out");
  )js",
               3);
}

TEST_F(ImagePage, explained_cell_is_shown_over_the_image) {
  write({"explain", model(), image_, "--cell", "1,1"});
  drive(path_, R"js(
    reader.check(reader.find('[data-step="weights"] canvas').getAttribute("aria-label").includes("row"), "as rows of the image");
    reader.check(/^\[class\]: \d/.test(reader.find('[data-step="weights"] p.small').textContent), "and the tokens beside them");
  )js",
        2);
  check_layout(path_);
}

TEST_F(ImagePage, sizes_of_images_are_compared) {
  write({"analyze", model() + "/config.json", "--image", "12,24,48,96"});
  drive(path_, R"js(
    const rows = [...document.querySelectorAll('[aria-label="sizes"] tbody tr')];
    reader.equal(rows.length, 4, "a row a size");
    reader.check(document.body.textContent.includes("one image of 12 × 12 pixels, 10 states each"), "what is analysed");
  )js",
        2);
  check_layout(path_);
}

TEST_F(ImagePage, classes_of_images_are_listed_with_their_pictures) {
  write({"classify", model(), image_, fixture_image("420.jpg")});
  drive_both(R"js(
    reader.equal(reader.find("h1").textContent, "Classes of images", "what they are of");
    reader.equal([...reader.find('[aria-label="images"] tbody').rows].length, 2, "a row an image");
    reader.check(!/texts?/.test(heddle.main.textContent), "no text is meant: " + heddle.main.textContent);
    const picture = reader.find("#page section img");
    await reader.until(() => picture.complete && picture.naturalWidth, "the picture");
    reader.equal([picture.alt, picture.naturalWidth], [reader.find("#text").textContent, 12], "the picture, as the model sees it");
    reader.equal(JSON.parse((await reader.saved('[data-export="json"]')).text).texts.some((one) => one.png), false, "pictures are not saved");
  )js",
             5);
  check_layout(path_);
}

TEST_F(ImagePage, augmentation_holds) {
  write({"augment", image_, fixture_image("420.jpg"), "--image-edge", "24", "--flip"});
  drive(path_, R"js(
    const canvases = [...document.querySelectorAll("[data-section] canvas")];
    reader.check(canvases.length > 60, "images: " + canvases.length);
    reader.check(reader.colors('[data-section^="cutmix"] canvas') > 8, "an image is drawn");
  )js" + std::string(kCanvases),
        3);
  check_layout(path_);
}

}  // namespace
}  // namespace heddle::testing
