// heddle attention, explain, analyze and augment of images: their numbers against those of forward,
// which transformers' are compared with, and bad input.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tests/cli/model_fixture.h"
#include "tests/cli/page_data.h"
#include "tests/cli/vision_model.h"

namespace heddle::testing {
namespace {

constexpr int64_t kLayers = 2, kHeads = 3, kCells = 10;

class ImagePages : public FolderFixture<write_vit> {
 protected:
  TempDir folder;
  const std::string page = (folder / "page.html").string(),
                    outputs = (folder / "out.safetensors").string(),
                    image = fixture_image("rgb.png");

  Json attention(std::vector<std::string> flags = {}) {
    flags.insert(flags.begin(), {"attention", model(), image, "--json"});
    const CliResult result = run_heddle(flags);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return Json::parse(result.out);
  }
  // What heddle forward says: [layer][head, query, key].
  std::vector<std::vector<float>> forward() {
    EXPECT_EQ(run_heddle({"forward", model(), image, "--all", "--output", outputs}).exit_code, 0);
    const SafetensorsFile file = SafetensorsFile::open(outputs);
    return {floats(file, "attentions.0"), floats(file, "attentions.1")};
  }
  void refused(const std::vector<std::string>& words, int code, const std::string& part) {
    const CliResult result = run_heddle(words);
    EXPECT_EQ(result.exit_code, code) << result.err;
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
    EXPECT_EQ(result.out, "");
  }
};

TEST_F(ImagePages, attention_has_the_weights_of_forward) {
  const Json json = attention();
  const auto maps = forward();
  EXPECT_EQ(json.at("grid").get_int("rows"), 3);
  EXPECT_EQ(json.at("grid").at("tokens").dump(), R"(["[class]"])");
  ASSERT_EQ(json.at("heads").size(), static_cast<size_t>(kLayers * kHeads));
  for (const Json& head : json.at("heads").as_array()) {
    const std::vector<float>& map = maps[static_cast<size_t>(head.get_int("layer"))];
    double entropy = 0;
    for (int64_t i = 0; i < kCells; ++i) {
      for (int64_t j = 0; j < kCells; ++j) {
        const double w = map[(head.get_int("head") * kCells + i) * kCells + j];
        entropy -= w * std::log(w) / kCells;
        EXPECT_NEAR(head.at("weights").as_array()[i].as_array()[j].as_double(), w, 1e-6);
      }
    }
    EXPECT_NEAR(head.at("entropy").as_double(), entropy, 1e-5);  // sums of f32
  }
}

// The product over the layers, last first, of (A + I) / 2, A the heads' mean or maximum, rows of
// sum 1: Abnar and Zuidema 2020, by whole matrices; so many of the least weights of an A are 0.
std::vector<double> rolled_out(const std::vector<std::vector<float>>& maps, bool is_max,
                               size_t discarded = 0) {
  std::vector<double> product;
  for (const std::vector<float>& map : maps) {
    std::vector<double> a(kCells * kCells);
    for (int64_t h = 0; h < kHeads; ++h) {
      for (int64_t i = 0; i < kCells * kCells; ++i) {
        const double w = map[h * kCells * kCells + i];
        a[i] = is_max ? std::max(a[i], w) : a[i] + w / kHeads;
      }
    }
    std::vector<double> sorted = a;
    std::ranges::sort(sorted);
    for (double& x : a) x = x < sorted[discarded] ? 0 : x;
    for (int64_t i = 0; i < kCells; ++i) {
      double sum = 0;
      for (int64_t j = 0; j < kCells; ++j) {
        double& x = a[i * kCells + j];
        x = (x + (i == j ? 1 : 0)) / 2;
        sum += x;
      }
      for (int64_t j = 0; j < kCells; ++j) a[i * kCells + j] /= sum;
    }
    if (product.empty()) {
      product = a;
      continue;
    }
    std::vector<double> next(kCells * kCells);
    for (int64_t i = 0; i < kCells; ++i) {
      for (int64_t k = 0; k < kCells; ++k) {
        for (int64_t j = 0; j < kCells; ++j) {
          next[i * kCells + j] += a[i * kCells + k] * product[k * kCells + j];
        }
      }
    }
    product = next;
  }
  return product;
}

void expect_rolled_out(const Json& rollout, const std::vector<std::vector<float>>& maps,
                       size_t discarded) {
  for (const bool is_max : {false, true}) {
    const std::vector<double> expected = rolled_out(maps, is_max, discarded);
    const auto& rows = rollout.at(is_max ? "max" : "mean").as_array();
    ASSERT_EQ(rows.size(), static_cast<size_t>(kCells));
    for (int64_t i = 0; i < kCells; ++i) {
      double sum = 0;
      for (int64_t j = 0; j < kCells; ++j) {
        const double x = rows[i].as_array()[j].as_double();
        sum += x;
        EXPECT_NEAR(x, expected[i * kCells + j], 2e-6);  // six digits, f32 weights
      }
      EXPECT_NEAR(sum, 1, 1e-5);
    }
  }
}

TEST_F(ImagePages, roll_out_is_the_product_of_the_layers) {
  const Json rollout = attention({"--no-importance", "--layer", "1"}).at("rollout");
  EXPECT_EQ(rollout.at("discard").as_double(), 0);
  expect_rolled_out(rollout, forward(), 0);
}

TEST_F(ImagePages, roll_out_without_the_least_weights_is_the_product_of_the_others) {
  const Json rollout = attention({"--no-importance", "--discard", "0.75"}).at("rollout");
  EXPECT_EQ(rollout.at("discard").as_double(), 0.75);
  expect_rolled_out(rollout, forward(), 75);
  for (const char* share : {"1.5", "-0.1", "nan"}) {
    refused({"attention", model(), image, std::string("--discard=") + share}, 2, "--discard");
  }
  refused({"attention", model(), "--text", "a dog", "--discard", "0.5"}, 2, "over an image");
}

TEST_F(ImagePages, every_chosen_head_has_a_price_in_log_p) {
  const CliResult table = run_heddle({"attention", model(), image});
  ASSERT_EQ(table.exit_code, 0) << table.err;
  EXPECT_NE(table.out.find("3 x 3 cells, LABEL_"), table.out.npos) << table.out;
  EXPECT_NE(table.out.find("log p of the likeliest class"), table.out.npos) << table.out;
  const Json json = attention({"--head", "0,2"});
  EXPECT_EQ(json.at("heads").size(), 4u);
  for (const Json& head : json.at("heads").as_array()) {
    EXPECT_TRUE(std::isfinite(head.at("importance").as_double()));
    EXPECT_NE(head.at("importance").as_double(), 0);
  }
}

TEST_F(ImagePages, page_holds_the_image_as_the_model_sees_it) {
  const CliResult result = run_heddle({"attention", model(), image, "--page", page});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json data = page_data(page);
  EXPECT_EQ(data.at("pixels").get_int("height"), 12);
  EXPECT_EQ(data.at("pixels").get_string("pixels").size(), 12u * 12 * 3 / 3 * 4);
  EXPECT_EQ(data.at("norms").size(), static_cast<size_t>(kCells));
}

TEST_F(ImagePages, explained_cell_has_the_weights_of_its_row_and_the_output_of_the_call) {
  const CliResult result = run_heddle(
      {"explain", model(), image, "--layer", "0", "--head", "1", "--cell", "2,0", "--page", page});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json data = page_data(page);
  EXPECT_EQ(data.at("queries").dump(), R"(["row 2, column 0"])");
  EXPECT_EQ(data.at("keys").size(), static_cast<size_t>(kCells));
  const std::vector<float> map = forward()[0];
  std::vector<double> weights;
  for (const Json& step : data.at("steps").as_array()) {
    const auto& values = step.at("values").as_array();
    const std::string key = step.get_string("key");
    EXPECT_EQ(values.size(), key == "k" || key == "v" ? 10u : 1u) << key;
    if (key != "weights") continue;
    for (const Json& x : values[0].as_array()) weights.push_back(x.as_double());
  }
  ASSERT_EQ(weights.size(), static_cast<size_t>(kCells));
  constexpr int64_t kRow = 1 + 2 * 3;  // the class token, two rows of three
  for (int64_t j = 0; j < kCells; ++j) {
    EXPECT_NEAR(weights[j], map[(kCells + kRow) * kCells + j], 1e-6);  // f32 against float64
  }
  const CliResult text = run_heddle({"explain", model(), image});
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_NE(text.out.find("layer 1, head 0"), text.out.npos) << text.out;
  EXPECT_NE(text.out.find("query [class]"), text.out.npos) << text.out;
}

TEST_F(ImagePages, what_is_of_texts_or_is_not_there_is_refused) {
  refused({"attention", model()}, 2, "reads images; give one behind the model");
  refused({"attention", model(), "--text", "words"}, 2, "in place of a text");
  refused({"attention", model(), image, "--text", "words"}, 2, "is for texts");
  refused({"attention", model(), image, "--from", "a", "--to", "b"}, 2, "words of a text");
  refused({"attention", model(), image, "--layer", "7"}, 2, "has layers 0 to 1");
  refused({"attention", model(), (folder / "gone.png").string()}, 3, "gone.png");
  refused({"attention", model(), fixture_image("animation.png.bad")}, 3, "animation.png.bad");
  refused({"explain", model(), image, "--cell", "3,0"}, 2, "3 rows and 3 columns");
  refused({"attention", model(), image, image}, 2, "Images are taken one at a time.");
  refused({"explain", model(), image, "--cell", "1"}, 2, "a row and a column");
  refused({"explain", model(), image, "--head", "3"}, 2, "has heads 0 to 2");
  refused({"explain", model(), image, "--kind", "cross"}, 2, "has attention of one kind");
  refused({"attention", text_model("classify"), image}, 3, "reads images");
  for (const std::string command : {"translate", "generate", "fill", "align"}) {
    refused({command, model()}, 3, "reads images, and a model that reads texts is needed");
  }
}

TEST_F(ImagePages, analysis_counts_what_a_vit_computes_at_each_size) {
  const CliResult result =
      run_heddle({"analyze", model() + "/config.json", "--image", "12,24,48", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json json = Json::parse(result.out);
  constexpr int64_t d = 24, hidden = 40, pixels = 4 * 4 * 3, classes = 5;
  ASSERT_EQ(json.at("sizes").size(), 3u);
  for (const Json& size : json.at("sizes").as_array()) {
    const int64_t side = size.at("image").as_array()[0].as_int() / 4, n = side * side + 1;
    EXPECT_EQ(size.get_int("states"), n);
    const int64_t attention = kLayers * 2 * 2 * n * n * d;
    EXPECT_EQ(size.get_int("attention"), attention);
    EXPECT_EQ(size.get_int("forward"), attention + kLayers * 2 * n * (4 * d * d + 2 * d * hidden) +
                                           2 * side * side * pixels * d + 2 * d * classes);
  }
  EXPECT_EQ(json.at("image").as_ints(), (std::vector<int64_t>{12, 12}));
  refused({"analyze", model() + "/config.json", "--length", "5"}, 2, "reads images");
  refused({"analyze", model() + "/config.json", "--image", "0"}, 2, "--image 0");
  refused({"analyze", "tiny", "--image", "8,16"}, 2, "reads no images");
}

// Six queries 16 wide, three classes and none: what their states become is work too.
TEST_F(ImagePages, analysis_counts_the_heads_of_a_detector) {
  const std::string detr = (folder / "detr").string();
  write_vision_model(detr, "detr");
  const CliResult result = run_heddle({"analyze", detr, "--image", "64", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  int64_t flops = 0;
  const Json json = Json::parse(result.out);
  for (const Json& step : json.at("steps").as_array()) {
    const std::string part = step.get_string("part"), name = step.get_string("name");
    if (part == "bbox_predictor.layers" || part == "class_labels_classifier") {
      flops += step.get_int("flops");
    }
    EXPECT_FALSE(name.starts_with("bbox_predictor") || name.starts_with("class_labels")) << name;
  }
  EXPECT_EQ(flops, 2 * 6 * (16 * 16 + 16 * 16 + 16 * 4 + 16 * 4));
}

TEST_F(ImagePages, augmentation_page_shows_every_setting_and_repeats_itself) {
  const std::vector<std::string> words = {"augment",       image, image,    "-o",      page,
                                          "--random-crop", "2",   "--flip", "--draws", "3",
                                          "--image-edge",  "16"};
  ASSERT_EQ(run_heddle(words).exit_code, 0);
  const std::string first = read_file(page);
  const Json data = page_data(page);
  std::vector<std::string> titles;
  for (const Json& section : data.at("sections").as_array()) {
    titles.push_back(section.get_string("title"));
    EXPECT_GT(section.at("images").size(), 2u) << titles.back();
    for (const Json& one : section.at("images").as_array()) EXPECT_EQ(one.get_int("width"), 16);
  }
  ASSERT_EQ(titles.size(), 12u);
  EXPECT_EQ(data.at("sections").as_array()[0].at("images").size(), 3u);
  EXPECT_EQ(titles[2], "random_crop 2");
  EXPECT_EQ(titles[4], "color_jitter 0.4 (off)");
  ASSERT_EQ(run_heddle(words).exit_code, 0);
  EXPECT_EQ(read_file(page), first);
  refused({"augment", image}, 2, "--page");
  refused({"augment", image, "-o", page, "--mixup-alpha", "0.8"}, 2, "give a second one");
  refused({"augment", (folder / "gone.png").string(), "-o", page}, 3, "gone.png");
  refused({"augment", image, "-o", page, "--random-erasing", "2"}, 2, "random_erasing");
  refused({"augment", image, "-o", page, "--color-jitter", "inf"}, 2, "finite number");
  refused({"augment", image, "-o", (folder / "none" / "p.html").string()}, 3, "does not exist");
}

// By the flags of detectors: of an image of a set, whose others a mosaic takes parts of.
TEST_F(ImagePages, augmentation_page_of_a_set_shows_boxes_that_go_along) {
  const std::string set = (folder / "set").string();
  ASSERT_EQ(run_heddle({"shapes", "--out", set, "--count", "5", "--held-out", "1", "--size", "64"})
                .exit_code,
            0);
  const std::vector<std::string> words = {"augment", "--data",  set,       "--sample", "1",
                                          "-o",      page,      "--turns", "columns",  "--mosaic",
                                          "0.5",     "--draws", "5"};
  const CliResult result = run_heddle(words);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::string first = read_file(page);
  const Json data = page_data(page);
  const auto& sections = data.at("sections").as_array();
  std::vector<std::string> titles;
  for (const Json& section : sections) titles.push_back(section.get_string("title"));
  EXPECT_EQ(titles,
            (std::vector<std::string>{"All settings together", "turns",
                                      "scale_low, scale_high (off)", "crop_edges (off)",
                                      "box_color_jitter (off)", "mosaic", "dense_targets (off)"}));
  EXPECT_EQ(sections[0].at("images").size(), 5u);
  EXPECT_NE(sections[0].get_string("text").find("mosaic 0.5"), std::string::npos);
  // Mirrored alone: the same objects, and the same pixels or others.
  const std::string original = data.at("original").get_string("caption");
  const std::string objects = original.substr(original.rfind(", "));
  std::set<std::string> different;
  for (const Json& one : sections[1].at("images").as_array()) {
    EXPECT_TRUE(one.get_string("caption").ends_with(objects)) << one.get_string("caption");
    different.insert(one.get_string("pixels"));
  }
  EXPECT_EQ(different.size(), 2u);
  EXPECT_TRUE(different.contains(data.at("original").get_string("pixels")));
  ASSERT_EQ(run_heddle(words).exit_code, 0);
  EXPECT_EQ(read_file(page), first);
  refused({"augment", "-o", page}, 2, "needs an image, or --data");
  refused({"augment", image, "-o", page, "--mosaic", "1"}, 2, "--data");
  refused({"augment", "--data", set, "-o", page, "--flip"}, 2, "--flip");
  refused({"augment", "--data", set, "-o", page, "--sample", "9"}, 2, "images 0 to");
  refused({"augment", "--data", set, "-o", page, "--mosaic", "2"}, 2, "mosaic");
  refused({"augment", "--data", image, "-o", page}, 3, "rgb.png");
}

}  // namespace
}  // namespace heddle::testing
