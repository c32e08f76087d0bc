// Positions looked up in the learned table, behind which stand those of other grids.
#include "heddle/nn/images/grid_positions.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "heddle/nn/images/cell_positions.h"
#include "heddle/ops/elementwise.h"
#include "heddle/ops/embedding.h"
#include "heddle/ops/matmul.h"
#include "heddle/ops/shape.h"

namespace heddle::nn {
namespace {

// Keys' kernel at a distance.
double cubic(double x, double a) {
  x = std::fabs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

// Of the four neighbours of a point, `t` behind the second.
std::array<double, 4> cubic_weights(double t) {
  constexpr double a = -0.75;
  return {cubic(t + 1, a), cubic(t, a), cubic(1 - t, a), cubic(2 - t, a)};
}

// [to, from], line by line.
std::vector<double> along_axis(int64_t from, int64_t to) {
  std::vector<double> matrix(static_cast<size_t>(from * to));
  for (int64_t i = 0; i < to; ++i) {
    const double at =
        (static_cast<double>(i) + 0.5) * static_cast<double>(from) / static_cast<double>(to) - 0.5;
    const double whole = std::floor(at);
    const std::array<double, 4> weights = cubic_weights(at - whole);
    for (int64_t k = 0; k < 4; ++k) {
      const int64_t j = std::clamp<int64_t>(static_cast<int64_t>(whole) - 1 + k, 0, from - 1);
      matrix[static_cast<size_t>(i * from + j)] += weights[static_cast<size_t>(k)];
    }
  }
  return matrix;
}

// The same where each point is the mean of what lies under a kernel around it.
std::vector<double> antialiased(int64_t from, int64_t to) {
  std::vector<double> matrix(static_cast<size_t>(from * to));
  const double step = static_cast<double>(from) / static_cast<double>(to);
  const double scale = std::max(step, 1.0);
  for (int64_t i = 0; i < to; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * step;
    const auto first = std::max<int64_t>(0, static_cast<int64_t>(centre - 2 * scale + 0.5));
    const auto end = std::min(from, static_cast<int64_t>(centre + 2 * scale + 0.5));
    double* const row = matrix.data() + i * from;
    double sum = 0;
    for (int64_t j = first; j < end; ++j) {
      sum += row[j] = cubic((static_cast<double>(j) + 0.5 - centre) / scale, -0.5);
    }
    for (int64_t j = first; j < end; ++j) row[j] /= sum;
  }
  return matrix;
}

}  // namespace

Tensor bicubic_matrix(const ImageSize& from, const ImageSize& to, bool is_antialiased) {
  const auto axis = is_antialiased ? antialiased : along_axis;
  const std::vector<double> down = axis(from.height, to.height);
  const std::vector<double> across = axis(from.width, to.width);
  const int64_t columns = from.height * from.width;
  Tensor matrix = Tensor::empty({to.height * to.width, columns}, DType::f32);
  float* const values = matrix.data<float>();
  for (int64_t r = 0; r < matrix.size(0); ++r) {
    const double* const y = down.data() + r / to.width * from.height;
    const double* const x = across.data() + r % to.width * from.width;
    for (int64_t c = 0; c < columns; ++c) {
      values[r * columns + c] = static_cast<float>(y[c / from.width] * x[c % from.width]);
    }
  }
  return matrix;
}

GridPositions::GridPositions(Parameter& table, const ImageSize& grid, const Options& options)
    : table_(&table), grid_(grid), o_(options) {}

// Each axis by itself.
GridPositions::Axes GridPositions::axes(const Tensor& table, const ImageSize& grid) const {
  const auto resized = [&](int64_t begin, int64_t from, int64_t to) {
    const Tensor own = slice(table, 0, begin, from);
    return from == to ? own : matmul(bicubic_matrix({from, 1}, {to, 1}, o_.is_antialiased), own);
  };
  return {resized(0, grid_.width, grid.width), resized(grid_.width, grid_.height, grid.height)};
}

// The vectors of the patches of a grid, which is another where each cell has learned its own.
Tensor GridPositions::of_cells(const Tensor& table, const ImageSize& grid) const {
  if (o_.of == PositionsOf::axes) {
    const Axes both = axes(table, grid);
    return cell_vectors(both.columns, both.rows, std::span(&grid, 1));
  }
  return matmul(bicubic_matrix(grid_, grid, o_.is_antialiased),
                slice(table, 0, o_.tokens, grid_.height * grid_.width));
}

Tensor GridPositions::table_of(const ImageSize& grid) const {
  const Tensor table = table_->in(DType::f32);
  if (grid == grid_) return table;
  if (o_.of == PositionsOf::axes) {
    const Axes both = axes(table, grid);
    return concat({both.columns, both.rows}, 0);
  }
  const Tensor patches = of_cells(table, grid);
  return o_.tokens > 0 ? concat({slice(table, 0, 0, o_.tokens), patches}, 0) : patches;
}

// The vectors of the own grid and the tokens before it.
Tensor GridPositions::with_tokens(const Tensor& table) const {
  if (o_.of == PositionsOf::cells) return table;
  const Tensor cells = of_cells(table, grid_);
  if (o_.tokens == 0) return cells;
  return concat({Tensor::zeros({o_.tokens, cells.size(1)}, DType::f32), cells}, 0);
}

Tensor GridPositions::vectors() const { return with_tokens(table_->in(DType::f32)); }

// What is made of a table is computed in f32.
Tensor GridPositions::table_with(std::span<const ImageSize> others, DType dtype) const {
  if (others.empty() && o_.of == PositionsOf::cells) return table_->in(dtype);
  const Tensor table = table_->in(DType::f32);
  std::vector<Tensor> parts = {with_tokens(table)};
  for (const ImageSize& other : others) parts.push_back(of_cells(table, other));
  const Tensor all = parts.size() == 1 ? parts[0] : concat(parts, 0);
  return dtype == DType::f32 ? all : cast(all, dtype);
}

Tensor GridPositions::operator()(const Tensor& x, std::span<const ImageSize> grids,
                                 const DropoutSpec& spec, const Run& run) const {
  std::vector<ImageSize> others;
  std::vector<int64_t> begins;  // of their rows in the table
  int64_t end = o_.tokens + grid_.height * grid_.width;
  std::vector<int32_t> ids;
  ids.reserve(static_cast<size_t>(x.size(0)));
  for (const ImageSize& grid : grids) {
    int64_t begin = o_.tokens;
    if (grid != grid_) {
      const auto known = std::find(others.begin(), others.end(), grid);
      if (known == others.end()) {
        others.push_back(grid), begins.push_back(end);
        begin = end;
        end += grid.height * grid.width;
      } else {
        begin = begins[static_cast<size_t>(known - others.begin())];
      }
    }
    for (int64_t i = 0; i < o_.tokens; ++i) ids.push_back(static_cast<int32_t>(i));
    for (int64_t i = 0; i < grid.height * grid.width; ++i) {
      ids.push_back(static_cast<int32_t>(begin + i));
    }
  }
  return add_positions(x, table_with(others, run.compute), ids, spec);
}

}  // namespace heddle::nn
