// Vectors of rows and of columns, which every cell of a row or a column shares.
#include "heddle/nn/images/cell_positions.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "heddle/ops/embedding.h"
#include "heddle/ops/shape.h"

namespace heddle::nn {
namespace {

// Of cells 1 .. n along one axis: [n, half].
std::vector<float> along_axis(int64_t n, int64_t half) {
  constexpr double kEpsilon = 1e-6;  // as DETR has it; n is never 0 here
  std::vector<float> values(static_cast<size_t>(n * half));
  for (int64_t i = 0; i < n; ++i) {
    const double at =
        static_cast<double>(i + 1) / (static_cast<double>(n) + kEpsilon) * 2 * std::numbers::pi;
    for (int64_t j = 0; j < half; j += 2) {
      const double angle =
          at / std::pow(10000.0, static_cast<double>(j) / static_cast<double>(half));
      values[static_cast<size_t>(i * half + j)] = static_cast<float>(std::sin(angle));
      values[static_cast<size_t>(i * half + j + 1)] = static_cast<float>(std::cos(angle));
    }
  }
  return values;
}

}  // namespace

Tensor sine_positions(std::span<const ImageSize> grids, int64_t width) {
  check(width > 0 && width % 4 == 0, ErrorKind::shape,
        "sine positions of width {}: sines and cosines of two coordinates need "
        "a multiple of 4",
        width);
  int64_t cells = 0;
  for (const ImageSize& grid : grids) cells += grid.height * grid.width;
  Tensor positions = Tensor::empty({cells, width}, DType::f32);
  float* to = positions.data<float>();
  const int64_t half = width / 2;
  for (const ImageSize& grid : grids) {
    const std::vector<float> down = along_axis(grid.height, half);
    const std::vector<float> across = along_axis(grid.width, half);
    for (int64_t y = 0; y < grid.height; ++y) {
      for (int64_t x = 0; x < grid.width; ++x, to += width) {
        std::copy_n(down.data() + y * half, half, to);
        std::copy_n(across.data() + x * half, half, to + half);
      }
    }
  }
  return positions;
}

Tensor cell_vectors(const Tensor& columns, const Tensor& rows, std::span<const ImageSize> grids) {
  std::vector<int32_t> x, y;
  for (const ImageSize& grid : grids) {
    for (int64_t i = 0; i < grid.height * grid.width; ++i) {
      x.push_back(static_cast<int32_t>(i % grid.width));
      y.push_back(static_cast<int32_t>(i / grid.width));
    }
  }
  return concat({embedding(columns, x, 1, {}, {}, {}), embedding(rows, y, 1, {}, {}, {})}, 1);
}

RowColumnPositions::RowColumnPositions(const Scope& s, int64_t width, const Init& init)
    : rows_(&(s / "row_embeddings" / "weight").parameter({kMost, width / 2}, init)),
      columns_(&(s / "column_embeddings" / "weight").parameter({kMost, width / 2}, init)) {}

Tensor RowColumnPositions::operator()(std::span<const ImageSize> grids, DType dtype) const {
  for (const ImageSize& grid : grids) {
    check(grid.height <= kMost && grid.width <= kMost, ErrorKind::data,
          "an image has a map of {} x {} cells; learned positions are of {} at "
          "most",
          grid.height, grid.width, kMost);
  }
  return cell_vectors(columns_->in(dtype), rows_->in(dtype), grids);
}

}  // namespace heddle::nn
