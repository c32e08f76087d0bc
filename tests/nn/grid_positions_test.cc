// Positions between those that were learned, against torch; images and their rows.
#include "heddle/nn/images/grid_positions.h"

#include <gtest/gtest.h>

#include "heddle/nn/images/image_rows.h"
#include "heddle/ops/reduce.h"
#include "tests/base/temporary.h"

namespace heddle::nn {
namespace {

void expect_matrix(const ImageSize& from, const ImageSize& to,
                   const std::vector<std::vector<double>>& want) {
  const Tensor matrix = bicubic_matrix(from, to);
  ASSERT_EQ(matrix.shape(), Shape({std::ssize(want), std::ssize(want[0])}));
  for (int64_t r = 0; r < matrix.size(0); ++r) {
    for (int64_t c = 0; c < matrix.size(1); ++c) {
      EXPECT_NEAR(matrix.data<float>()[r * matrix.size(1) + c], want[r][c], 6e-7) << r << ' ' << c;
    }
  }
}

// torch.nn.functional.interpolate(.., mode="bicubic", align_corners=False) of unit images, f64.
TEST(BicubicMatrix, equals_torch) {
  expect_matrix({3, 1}, {5, 1},
                {{1.096, -0.096, 0},
                 {0.612, 0.46, -0.072},
                 {0, 1, 0},
                 {-0.072, 0.46, 0.612},
                 {0, -0.096, 1.096}});
  expect_matrix({2, 3}, {3, 2},
                {{0.840576, 0.284437, -0.038208, -0.067139, -0.022719, 0.003052},
                 {-0.038208, 0.284437, 0.840576, 0.003052, -0.022719, -0.067139},
                 {0.386719, 0.130859, -0.017578, 0.386719, 0.130859, -0.017578},
                 {-0.017578, 0.130859, 0.386719, -0.017578, 0.130859, 0.386719},
                 {-0.067139, -0.022719, 0.003052, 0.840576, 0.284437, -0.038208},
                 {0.003052, -0.022719, -0.067139, -0.038208, 0.284437, 0.840576}});
}

TEST(BicubicMatrix, same_size_is_the_identity) {
  expect_matrix({1, 3}, {1, 3}, {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}});
}

TEST(GridPositions, each_image_gets_those_of_its_own_grid) {
  Parameters parameters(1);
  Parameter& table = Scope(parameters).parameter({1 + 4, 3}, Init::normal(1));
  const GridPositions positions(table, {2, 2}, {.tokens = 1});
  const std::vector<ImageSize> grids = {{2, 2}, {1, 3}, {2, 2}, {1, 3}};
  const Tensor x = Tensor::zeros({5 + 4 + 5 + 4, 3}, DType::f32);
  const Tensor y = positions(x, grids, {}, {});
  const std::vector<float> got = y.to_floats(), learned = table.value().to_floats();
  const std::vector<float> own(got.begin(), got.begin() + 15);
  const std::vector<float> other(got.begin() + 15, got.begin() + 27);
  EXPECT_EQ(own, learned);
  EXPECT_EQ(std::vector<float>(got.begin() + 27, got.begin() + 42), own);
  EXPECT_EQ(std::vector<float>(got.begin() + 42, got.end()), other);
  EXPECT_EQ(std::vector<float>(other.begin(), other.begin() + 3),
            std::vector<float>(learned.begin(), learned.begin() + 3));
  const std::vector<float> matrix = bicubic_matrix({2, 2}, {1, 3}).to_floats();
  for (int64_t i = 0; i < 9; ++i) {
    double want = 0;
    for (int64_t k = 0; k < 4; ++k)
      want += double{matrix[i / 3 * 4 + k]} * learned[3 + k * 3 + i % 3];
    EXPECT_NEAR(other[3 + i], want, 1e-6) << i;
  }
  // The rows of a matrix sum to 1: all of the gradient arrives.
  backward(sum(y));
  double total = 0;
  for (const float g : table.grad().to_floats()) total += g;
  EXPECT_NEAR(total, 18 * 3, 1e-4);
}

// Columns 0 to 2, then rows 0 and 1.
TEST(GridPositions, those_of_axes_are_a_columns_vector_and_a_rows_and_none_of_tokens) {
  Parameters parameters(1);
  Parameter& table = Scope(parameters).parameter({3 + 2, 2}, Init::normal(1));
  const GridPositions positions(table, {2, 3}, {.tokens = 1, .of = PositionsOf::axes});
  const std::vector<float> learned = table.value().to_floats();
  const std::vector<float> own = positions.vectors().to_floats();
  ASSERT_EQ(own.size(), static_cast<size_t>((1 + 6) * 4));
  for (int64_t j = 0; j < 4; ++j) EXPECT_EQ(own[j], 0);
  const auto expect_cell = [&](const float* cell, const float* column, const float* row) {
    for (int64_t j = 0; j < 2; ++j) {
      EXPECT_EQ(cell[j], column[j]);
      EXPECT_EQ(cell[2 + j], row[j]);
    }
  };
  for (int64_t y = 0; y < 2; ++y) {
    for (int64_t x = 0; x < 3; ++x) {
      expect_cell(own.data() + (1 + y * 3 + x) * 4, learned.data() + x * 2,
                  learned.data() + (3 + y) * 2);
    }
  }
}

TEST(GridPositions, those_of_axes_are_interpolated_axis_by_axis) {
  Parameters parameters(1);
  Parameter& table = Scope(parameters).parameter({3 + 2, 2}, Init::normal(1));
  const GridPositions positions(table, {2, 3}, {.of = PositionsOf::axes});
  const std::vector<float> learned = table.value().to_floats();
  const ImageSize wide{2, 5};
  Parameters others(2);
  Parameter& wider = Scope(others).parameter({5 + 2, 2}, Init::normal(1));
  {
    const NoGrad off;
    wider.take(positions.table_of(wide));
  }
  const std::vector<float> resized = wider.value().to_floats();
  ASSERT_EQ(resized.size(), static_cast<size_t>((5 + 2) * 2));
  const std::vector<float> matrix = bicubic_matrix({1, 3}, {1, 5}).to_floats();
  for (int64_t i = 0; i < 5 * 2; ++i) {
    double want = 0;
    for (int64_t k = 0; k < 3; ++k) want += double{matrix[i / 2 * 3 + k]} * learned[k * 2 + i % 2];
    EXPECT_NEAR(resized[i], want, 1e-6) << i;
  }
  // As many rows as before: theirs are untouched.
  EXPECT_EQ(std::vector<float>(resized.begin() + 10, resized.end()),
            std::vector<float>(learned.begin() + 6, learned.end()));
  // What an image gets is what a model of its size would have for its own.
  const GridPositions own(wider, wide, {.of = PositionsOf::axes});
  const std::vector<ImageSize> grids = {wide, {2, 3}, wide};
  const Tensor x = Tensor::zeros({10 + 6 + 10, 4}, DType::f32);
  const Tensor y = positions(x, grids, {}, {});
  const std::vector<float> got = y.to_floats(), vectors = own.vectors().to_floats();
  EXPECT_EQ(std::vector<float>(got.begin(), got.begin() + 40), vectors);
  EXPECT_EQ(std::vector<float>(got.begin() + 40, got.begin() + 64),
            positions.vectors().to_floats());
  EXPECT_EQ(std::vector<float>(got.begin() + 64, got.end()), vectors);
  // The rows of a matrix sum to 1: all of the gradient arrives.
  backward(sum(y));
  double total = 0;
  for (const float g : table.grad().to_floats()) total += g;
  EXPECT_NEAR(total, 26 * 4, 1e-4);
}

TEST(ImageRows, rows_know_their_image_and_their_place_in_it) {
  const std::vector<uint32_t> samples = {7, 4};
  const auto ids = row_ids(&samples, Segments::from_lengths(std::vector<int64_t>{2, 3}));
  EXPECT_EQ(ids->sample, (std::vector<uint32_t>{7, 7, 4, 4, 4}));
  EXPECT_EQ(ids->position, (std::vector<uint32_t>{0, 1, 0, 1, 2}));
  EXPECT_EQ(row_ids(nullptr, Segments::uniform(2, 2)), nullptr);
}

TEST(ImageRows, what_does_not_fit_is_a_shape_error) {
  const std::vector<ImageSize> sizes = {{2, 3}, {1, 1}};
  const Segments segments = image_segments(sizes), others = Segments::uniform(2, 3);
  EXPECT_EQ(segments, Segments::from_lengths(std::vector<int64_t>{6, 1}));
  const std::vector<uint32_t> samples = {1};
  const Tensor x = Tensor::zeros({7, 3}, DType::f32);
  const ImageRows right{.x = x, .segments = &segments, .sizes = &sizes};
  right.check(3);
  ImageRows wrong = right;
  expect_error(ErrorKind::shape, {"3 channels", "reads 1"}, [&] { right.check(1); });
  wrong.segments = &others;
  expect_error(ErrorKind::shape, {"segments"}, [&] { wrong.check(3); });
  wrong = right, wrong.x = x.slice(0, 0, 5);
  expect_error(ErrorKind::shape, {"7 pixels", "[5, 3]"}, [&] { wrong.check(3); });
  wrong = right, wrong.samples = &samples;
  expect_error(ErrorKind::shape, {"1 numbers of 2 images"}, [&] { wrong.check(3); });
}

}  // namespace
}  // namespace heddle::nn
