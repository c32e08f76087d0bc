// Attention over images: rows of which only the largest weights are kept, windows that cover every
// cell, what cells are called.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "heddle/inspect/images/image_attention.h"
#include "heddle/models/registry.h"
#include "tests/base/temporary.h"
#include "tests/cli/vision_model.h"

namespace heddle::inspect {
namespace {

class ImageAttention : public ::testing::Test {
 protected:
  ImageSubject open(const std::string& name) {
    testing::write_vision_model(model_, name);
    return ImageSubject(model_, read_image(testing::fixture_image("rgb.png")), "rgb.png", {});
  }
  // A ViT of 3 x 3 patches with random weights.
  void write_mean_pooled(bool has_token) {
    testing::write_vision_model(model_);
    Json config = Json::load(model_ + "/config.json");
    config["pooling"] = "mean", config["class_token"] = has_token;
    nn::Parameters parameters(3);
    save_model(model_, *make_model(nn::Scope(parameters), config), parameters);
  }
  testing::TempDir folder_;
  const std::string model_ = (folder_ / "model").string();
};

TEST_F(ImageAttention, few_weights_are_the_largest_of_each_row_and_tokens_have_all) {
  const ImageSubject subject = open("vit");
  const ImageMaps whole = image_maps(subject, {.importance = false});
  const ImageMaps few = image_maps(subject, {.importance = false, .most_weights = 100});
  constexpr int64_t kCells = 10, kKept = 4;
  ASSERT_EQ(few.heads.size(), 6u);  // two layers of three
  ASSERT_EQ(whole.heads.size(), 6u);
  for (size_t h = 0; h < few.heads.size(); ++h) {
    const ImageHead &a = whole.heads[h], &b = few.heads[h];
    ASSERT_EQ(b.kept, kKept);
    ASSERT_EQ(b.whole_rows, 1);
    ASSERT_EQ(b.weights.size(), static_cast<size_t>(kCells + (kCells - 1) * kKept));
    EXPECT_TRUE(std::equal(b.weights.begin(), b.weights.begin() + kCells, a.weights.begin()));
    for (int64_t i = 1; i < kCells; ++i) {
      std::vector<float> row(a.weights.begin() + i * kCells, a.weights.begin() + (i + 1) * kCells);
      for (int64_t k = 0; k < kKept; ++k) {
        const float w = b.weights[kCells + (i - 1) * kKept + k];
        EXPECT_EQ(w, row[b.columns[(i - 1) * kKept + k]]);
      }
      std::ranges::sort(row, std::greater<>());
      EXPECT_TRUE(std::equal(row.begin(), row.begin() + kKept,
                             b.weights.begin() + kCells + (i - 1) * kKept));
    }
    EXPECT_EQ(a.entropy, b.entropy);
    EXPECT_EQ(a.distance, b.distance);
  }
  EXPECT_EQ(few.rollout->mean, whole.rollout->mean);
}

// Each row of roll-out is a distribution over the finest grid, from windows, shifts and merges.
TEST_F(ImageAttention, every_cell_is_a_query_once_and_a_roll_out_through_windows_sums_to_one) {
  const ImageSubject subject = open("swin");
  ASSERT_EQ(subject.calls().size(), 4u);
  ASSERT_EQ(subject.grids().size(), 2u);
  for (const ImageCall& call : subject.calls()) {
    std::vector<int32_t> seen;
    for (const AttentionWindow& window : call.windows) {
      EXPECT_EQ(window.queries, window.keys);
      for (const int32_t cell : window.queries) {
        if (cell >= 0) seen.push_back(cell);
      }
    }
    std::ranges::sort(seen);
    EXPECT_EQ(std::ssize(seen), subject.grids()[call.queries].cells());
    EXPECT_EQ(std::ranges::adjacent_find(seen), seen.end());
  }
  const ImageMaps maps = image_maps(subject, {.importance = false});
  const int64_t cells = subject.grids().front().cells(), rows = std::ssize(maps.rollout->rows);
  EXPECT_EQ(maps.rollout->rows.front(), -1);
  EXPECT_EQ(rows, subject.grids().back().cells() + 1);
  for (int64_t r = 0; r < rows; ++r) {
    for (const std::vector<float>* all : {&maps.rollout->mean, &maps.rollout->max}) {
      double sum = 0;
      for (int64_t j = 0; j < cells; ++j) sum += (*all)[r * cells + j];
      EXPECT_NEAR(sum, 1, 1e-5);  // of f32
    }
  }
}

// A + I with rows of sum 1, of a call with one head.
std::vector<double> mixed(const ImageSubject& subject, const ImageHead& head) {
  const ImageCall& call = subject.calls()[head.call];
  const int64_t n = subject.grids()[call.queries].cells();
  std::vector<double> a(n * n);
  size_t at = 0;
  for (const AttentionWindow& window : call.windows) {
    for (const int32_t query : window.queries) {
      for (const int32_t key : window.keys) {
        const float w = head.weights[at++];
        if (query >= 0 && key >= 0) a[query * n + key] = w;
      }
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    a[i * n + i] += 1;
    const double sum = std::accumulate(a.begin() + i * n, a.begin() + (i + 1) * n, 0.0);
    for (int64_t j = 0; j < n; ++j) a[i * n + j] /= sum;
  }
  return a;
}

// Three rows and columns become two: of the first two cells, and of the last one with padding.
TEST_F(ImageAttention, roll_out_goes_back_through_a_merge_of_an_odd_grid) {
  testing::write_vision_model(model_, "swin");
  Json config = Json::load(model_ + "/config.json");
  config["image_size"] = 12, config["patch_size"] = 4, config["window_size"] = 2;
  config["depths"] = config["num_heads"] = Json::Array{1, 1};
  nn::Parameters parameters(3);
  save_model(model_, *make_model(nn::Scope(parameters), config), parameters);
  const ImageSubject subject(model_, read_image(testing::fixture_image("rgb.png")), "rgb.png", {});
  const ImageMaps maps = image_maps(subject, {.importance = false});
  ASSERT_EQ(maps.heads.size(), 2u);
  ASSERT_EQ(subject.grids().front().cells(), 9);
  ASSERT_EQ(subject.grids().back().cells(), 4);
  const std::vector<double> fine = mixed(subject, maps.heads[0]),
                            coarse = mixed(subject, maps.heads[1]);
  constexpr int64_t kMergedInto[9] = {0, 0, 1, 0, 0, 1, 2, 2, 3}, kOf[4] = {4, 2, 2, 1};
  for (int64_t r = 0; r < 4; ++r) {
    for (int64_t j = 0; j < 9; ++j) {
      double wanted = 0;
      for (int64_t cell = 0; cell < 9; ++cell) {
        const int64_t merged = kMergedInto[cell];
        wanted += coarse[r * 4 + merged] / static_cast<double>(kOf[merged]) * fine[cell * 9 + j];
      }
      EXPECT_NEAR(maps.rollout->mean[(1 + r) * 9 + j], wanted, 1e-6) << r << " " << j;  // of f32
    }
  }
}

TEST_F(ImageAttention, weights_that_are_not_finite_are_a_data_error) {
  testing::write_vision_model(model_);
  Json config = Json::load(model_ + "/config.json");
  config["architectures"] = Json::Array{"ViTModel"};
  nn::Parameters parameters(3);
  const auto model = make_model(nn::Scope(parameters), config);
  for (auto& p : parameters.all()) {
    p->value().data<float>()[0] = std::numeric_limits<float>::quiet_NaN();
    p->changed(true);
  }
  save_model(model_, *model, parameters);
  const ImageSubject subject(model_, read_image(testing::fixture_image("rgb.png")), "rgb.png", {});
  expect_error(ErrorKind::data, {"layer 0, head 0", "not finite"},
               [&] { image_maps(subject, {.importance = false}); });
}

// What is classified is a mean of cells, so a row of that mean stands before the others.
TEST_F(ImageAttention, roll_out_begins_with_the_mean_of_the_cells_where_their_mean_is_classified) {
  for (const bool has_token : {true, false}) {
    write_mean_pooled(has_token);
    const ImageSubject subject(model_, read_image(testing::fixture_image("rgb.png")), "rgb.png",
                               {});
    const ImageMaps maps = image_maps(subject, {.importance = false});
    const int64_t tokens = has_token ? 1 : 0, cells = tokens + 9;
    ASSERT_EQ(subject.grids().front().cells(), cells);
    EXPECT_EQ(std::ssize(subject.grids().front().tokens), tokens);
    ASSERT_EQ(std::ssize(maps.rollout->rows), 1 + cells);
    EXPECT_EQ(maps.rollout->rows.front(), -1);
    for (int64_t j = 0; j < cells; ++j) {
      double mean = 0;
      for (int64_t r = 0; r < 9; ++r) mean += maps.rollout->mean[(1 + tokens + r) * cells + j] / 9;
      EXPECT_NEAR(maps.rollout->mean[j], mean, 1e-6);  // of f32
    }
  }
}

TEST(CellGrid, names_count_rows_and_columns_behind_the_tokens) {
  const CellGrid grid{{"[class]"}, {2, 3}};
  EXPECT_EQ(grid.cells(), 7);
  EXPECT_EQ(grid.name(0), "[class]");
  EXPECT_EQ(grid.name(5), "row 1, column 1");
}

TEST(ImageJson, large_images_are_made_smaller_in_their_shape) {
  const Json json = image_json(Image(100, 40), 50);
  EXPECT_EQ(json.get_int("height"), 50);
  EXPECT_EQ(json.get_int("width"), 20);
  EXPECT_EQ(json.get_string("pixels").size(), 50u * 20 * 4);
}

}  // namespace
}  // namespace heddle::inspect
