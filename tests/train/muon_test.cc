// Orthogonal steps: their singular values, the formula of a step, tensor by tensor of a parameter,
// and which parameters get them.
#include "heddle/train/muon.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "heddle/base/parallel.h"
#include "heddle/base/profile.h"
#include "heddle/nn/layers.h"
#include "heddle/train/optimizer.h"

namespace heddle::train {
namespace {

using Matrix = std::vector<std::vector<double>>;

Tensor random_matrix(int64_t rows, int64_t columns, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  Tensor x = Tensor::empty({rows, columns}, DType::f32);
  for (int64_t i = 0; i < x.elements(); ++i) x.data<float>()[i] = normal(generator);
  return x;
}

Matrix matrix_of(const Tensor& x, int64_t first, int64_t rows) {
  Matrix m(static_cast<size_t>(rows), std::vector<double>(static_cast<size_t>(x.size(1))));
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < x.size(1); ++c) {
      m[r][c] = x.data<float>()[(first + r) * x.size(1) + c];
    }
  }
  return m;
}

Matrix transposed(const Matrix& x) {
  Matrix y(x[0].size(), std::vector<double>(x.size()));
  for (size_t r = 0; r < x.size(); ++r) {
    for (size_t c = 0; c < x[0].size(); ++c) y[c][r] = x[r][c];
  }
  return y;
}

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix y(a.size(), std::vector<double>(b[0].size()));
  for (size_t r = 0; r < a.size(); ++r) {
    for (size_t c = 0; c < b[0].size(); ++c) {
      for (size_t i = 0; i < b.size(); ++i) y[r][c] += a[r][i] * b[i][c];
    }
  }
  return y;
}

// The source's algorithm in float64: of a matrix that is higher than wide, of its transpose.
Matrix newton_schulz(Matrix x) {
  const bool is_high = x.size() > x[0].size();
  if (is_high) x = transposed(x);
  double squares = 0;
  for (const auto& row : x) {
    for (const double v : row) squares += v * v;
  }
  for (auto& row : x) {
    for (double& v : row) v /= std::sqrt(squares);
  }
  for (int step = 0; step < 5; ++step) {
    const Matrix a = product(x, transposed(x)), aa = product(a, a);
    Matrix b = a;
    for (size_t r = 0; r < b.size(); ++r) {
      for (size_t c = 0; c < b.size(); ++c) b[r][c] = -4.775 * a[r][c] + 2.0315 * aa[r][c];
    }
    const Matrix bx = product(b, x);
    for (size_t r = 0; r < x.size(); ++r) {
      for (size_t c = 0; c < x[0].size(); ++c) x[r][c] = 3.4445 * x[r][c] + bx[r][c];
    }
  }
  return is_high ? transposed(x) : x;
}

TEST(Muon, orthogonal_equals_the_formula_in_float64) {
  for (const auto& [rows, columns] : {std::pair{8, 8}, {5, 33}, {70, 12}, {64, 64}, {1, 9}}) {
    const Tensor x = random_matrix(rows, columns, 3), got = orthogonal(x);
    const Matrix want = newton_schulz(matrix_of(x, 0, rows));
    double error = 0, size = 0;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) {
        const double w = want[r][c];
        error += std::pow(got.data<float>()[r * columns + c] - w, 2), size += w * w;
      }
    }
    EXPECT_LT(std::sqrt(error / size), 0.06) << rows << " x " << columns;  // bf16, five steps
  }
}

TEST(Muon, singular_values_become_those_of_a_rotation) {
  const Tensor x = random_matrix(24, 60, 5);
  for (int64_t i = 0; i < x.elements(); ++i) {  // rows that are much alike, of different sizes
    x.data<float>()[i] = static_cast<float>(1 + i / 60 % 4) * (x.data<float>()[i] + 1);
  }
  const Matrix y = matrix_of(orthogonal(x), 0, 24), gram = product(y, transposed(y));
  for (size_t i = 0; i < gram.size(); ++i) {
    EXPECT_GT(gram[i][i], 0.4) << i;
    EXPECT_LT(gram[i][i], 1.5) << i;
    // Half of what lies between the squares of the least and the greatest: 1.2 and 0.7, and bf16.
    for (size_t j = 0; j < i; ++j) EXPECT_LT(std::abs(gram[i][j]), 0.5) << i << ", " << j;
  }
}

TEST(Muon, nothing_comes_of_nothing) {
  const Tensor y = orthogonal(Tensor::zeros({3, 4}, DType::f32));
  EXPECT_EQ(y.to_floats(), std::vector<float>(12, 0.0f));
}

struct Layers {
  nn::Parameters parameters{1};
  nn::Linear stacked, head;
  Layers()
      : stacked(nn::Scope(parameters) / "a", {"q", "k"}, {.in = 6, .out = 4}),
        head(nn::Scope(parameters) / "head", {.in = 6, .out = 3, .is_head = true}) {}
  nn::Parameter& at(size_t i) { return *parameters.all()[i]; }  // stacked, its bias, head, its bias
  void gradients(unsigned seed) {
    for (size_t i = 0; i < parameters.all().size(); ++i) {
      const Shape& shape = at(i).shape();
      const Tensor numbers = random_matrix(1, shape.elements(), seed);
      at(i).grad() = Tensor::empty(shape, DType::f32);
      std::copy_n(numbers.data<float>(), shape.elements(), at(i).grad().data<float>());
    }
  }
};

TEST(Muon, a_step_equals_the_formula_for_each_tensor_of_a_parameter) {
  Layers m;
  Optimizer muon(m.parameters, {.is_muon = true,
                                .decoupled_decay = true,
                                .momentum = 0.9,
                                .nesterov = true,
                                .weight_decay = 0.1});
  const Tensor start = m.at(0).value().clone();
  Tensor want = start.clone(), v = Tensor::zeros({8, 6}, DType::f32);
  for (unsigned update = 1; update <= 2; ++update) {
    m.gradients(update);
    const Tensor g = m.at(0).grad().clone();
    for (const int64_t first : {0, 4}) {
      Matrix way = matrix_of(g, first, 4);
      for (int64_t r = 0; r < 4; ++r) {
        for (int64_t c = 0; c < 6; ++c) {
          float& velocity = v.data<float>()[(first + r) * 6 + c];
          velocity = static_cast<float>(0.9 * velocity + 0.5 * way[r][c]);
          way[r][c] = 0.5 * way[r][c] + 0.9 * velocity;
        }
      }
      const Matrix direction = newton_schulz(way);
      for (int64_t r = 0; r < 4; ++r) {
        for (int64_t c = 0; c < 6; ++c) {
          float& w = want.data<float>()[(first + r) * 6 + c];
          w -= static_cast<float>(0.01 * (0.2 * std::sqrt(6.0) * direction[r][c] + 0.1 * w));
        }
      }
    }
    muon.step(0.01, 0.5);
  }
  double error = 0, change = 0;
  for (int64_t i = 0; i < 48; ++i) {
    const double w = want.data<float>()[i];
    error += std::pow(m.at(0).value().data<float>()[i] - w, 2);
    change += std::pow(w - start.data<float>()[i], 2);
  }
  EXPECT_LT(std::sqrt(error / change), 0.06);  // bf16, five steps
}

TEST(Muon, heads_and_vectors_go_by_adam) {
  Layers m, by_adam;
  const OptimizerOptions adamw{.decoupled_decay = true, .weight_decay = 0.1};
  OptimizerOptions options = adamw;
  options.is_muon = true;
  Optimizer muon(m.parameters, options), adam(by_adam.parameters, adamw);
  EXPECT_FALSE(muon.moments()[0].v.defined());
  m.gradients(1), by_adam.gradients(1);
  muon.step(0.01, 1), adam.step(0.01, 1);
  EXPECT_NE(m.at(0).value().to_floats(), by_adam.at(0).value().to_floats());
  for (const size_t i : {1, 2, 3}) {
    EXPECT_EQ(m.at(i).value().to_floats(), by_adam.at(i).value().to_floats()) << i;
  }
}

// Five steps of three products for each of the two tensors of a parameter.
TEST(Muon, profile_has_the_products_of_every_matrix) {
  const int threads_before = num_threads();
  set_num_threads(2);
  Layers m;
  Optimizer muon(m.parameters, {.is_muon = true});
  m.gradients(1);
  start_profile();
  muon.step(0.01, 1);
  const auto profile = stop_profile();
  set_num_threads(threads_before);
  int64_t products = 0;
  for (const Profile::Row& row : profile->rows) {
    if (row.kernel == "gemm") products += row.totals.calls;
  }
  EXPECT_EQ(products, 2 * 5 * 3);
}

TEST(Muon, any_number_of_threads_gives_the_same_bits) {
  std::vector<std::vector<float>> values;
  const int threads_before = num_threads();
  for (const int threads : {1, 2, 3}) {
    set_num_threads(threads);
    Layers m;
    Optimizer muon(m.parameters, {.is_muon = true, .ema_decay = 0.9});
    for (unsigned update = 1; update <= 2; ++update) m.gradients(update), muon.step(0.01, 1);
    values.push_back(m.at(0).value().to_floats());
    const std::vector<float> ema = muon.moments()[0].ema.to_floats();
    values.back().insert(values.back().end(), ema.begin(), ema.end());
  }
  set_num_threads(threads_before);
  EXPECT_EQ(values[0], values[1]);
  EXPECT_EQ(values[0], values[2]);
}

}  // namespace
}  // namespace heddle::train
