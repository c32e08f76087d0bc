// The cases of batch norm, by the statistics of its rows and by others.
#include <fmt/format.h>

#include "heddle/ops/elementwise.h"
#include "heddle/ops/images/batch_norm.h"
#include "tests/ops/case_parts.h"
#include "tests/ops/definitions.h"

namespace heddle {
namespace {

// What is added so that ReLU is far from its kink: of each element, or of each column.
Tensor far(const Shape& shape) {
  std::vector<float> values;
  for (int64_t i = 0; i < shape.elements(); ++i) values.push_back(i % 3 == 0 ? -20.0f : 20.0f);
  return Tensor::from(values, shape);
}

struct Variant {
  bool adds, relu, is_fixed;
  std::string name() const {
    return fmt::format("{}{}{}", is_fixed ? "fixed" : "of_rows", adds ? "_added" : "",
                       relu ? "_relu" : "");
  }
};

// Inputs: x, gamma, beta, added.
definition::Doubles plain(const definition::Inputs& in, int64_t width, const Variant& v,
                          const std::vector<float>& shift) {
  const auto rows = static_cast<int64_t>(in[0].size()) / width;
  definition::Doubles y(in[0].size());
  for (int64_t c = 0; c < width; ++c) {
    definition::Doubles column;
    for (int64_t r = 0; r < rows; ++r) column.push_back(in[0][r * width + c]);
    auto [mean, rstd] = definition::mean_and_rstd(column, 1e-3);
    if (v.is_fixed) mean = 0.25 * double(c), rstd = 1 / std::sqrt(1.5 + 1e-3);
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t i = r * width + c;
      double value = (column[r] - mean) * rstd * in[1][c] + in[2][c];
      if (v.adds) value += in[3][i];
      if (v.relu) value = std::max(0.0, value + shift[v.adds ? i : c]);
      y[i] = value;
    }
  }
  return y;
}

}  // namespace

void add_batch_norm_cases(std::vector<OpCase>& all, const OpSizes& z) {
  int64_t rows = 0;
  for (const ImageSize& size : z.images) rows += size.height * size.width;
  const int64_t width = z.channels + 18;  // more than a vector
  const Shape x{rows, width}, row{width};
  ColumnMoments fixed{Tensor::empty(row, DType::f32), Tensor::full(row, 1.5f)};
  for (int64_t c = 0; c < width; ++c) fixed.mean.data<float>()[c] = 0.25f * static_cast<float>(c);
  for (const Variant v :
       {Variant{false, false, false}, Variant{false, true, false}, Variant{true, false, false},
        Variant{true, true, false}, Variant{false, true, true}, Variant{true, true, true}}) {
    const Tensor shift = far(v.adds ? x : row);
    OpCase c{
        .op = "batch_norm",
        .variant = v.name(),
        .shapes = {x, row, row},
        .function =
            [=](const Tensors& in) {
              BatchNormOptions o{.eps = 1e-3f, .relu = v.relu};
              if (v.is_fixed) o.fixed = fixed;
              Tensor beta = in[2], added = v.adds ? in[3] : Tensor();
              if (v.relu && v.adds) added = add(added, cast(shift, added.dtype()));
              if (v.relu && !v.adds) beta = add(beta, shift);
              return Tensors{batch_norm(in[0], in[1], beta, added, o)};
            },
        .plain =
            [=](const definition::Inputs& in) { return plain(in, width, v, shift.to_floats()); },
        .always_f32 = {1, 2}};
    if (v.adds) c.shapes.push_back(x);
    all.push_back(std::move(c));
  }
}

}  // namespace heddle
