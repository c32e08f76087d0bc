// Orthogonal steps by Newton and Schulz, tensor by tensor.
#include "heddle/train/muon.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "heddle/kernels/kernels.h"

namespace heddle::train {

namespace {

// x <- a x + b (x x') x + c (x x')^2 x: the coefficients of the source.
constexpr float kA = 3.4445f, kB = -4.775f, kC = 2.0315f;
constexpr int kSteps = 5;

// The smaller of x x' and x' x, by which a step multiplies x from the left or the right.
struct Sides {
  int64_t rows, columns;
  bool from_left() const { return rows <= columns; }
  int64_t least() const { return std::min(rows, columns); }
};

void newton_schulz_step(const Sides& sides, const Tensor& x, const Tensor& gram,
                        const Tensor& square, const Tensor& factor, const Tensor& next) {
  const bool left = sides.from_left();
  kernels().gemm(
      {.a = x.rows(), .b = x.rows(), .c = gram.rows(), .transpose_a = !left, .transpose_b = left});
  kernels().convert(gram.rows(), factor.rows());
  kernels().gemm({.a = factor.rows(), .b = factor.rows(), .c = square.rows()});
  kernels().axpby(kB, gram.rows(), kC, square.rows());
  kernels().convert(square.rows(), factor.rows());
  kernels().gemm(
      {.a = (left ? factor : x).rows(), .b = (left ? x : factor).rows(), .c = next.rows()});
  kernels().axpby(kA, x.rows(), 1, next.rows());
}

// A tensor of the checkpoint in a parameter.
struct StoredMatrix {
  const MuonArgs* of;
  int64_t row, rows;
};

void step(const StoredMatrix& matrix, const MuonOptions& o) {
  nn::Parameter& p = *matrix.of->p;
  const int64_t columns = p.shape()[1], first = matrix.row * columns;
  const Rows g{matrix.of->gradient + first, matrix.rows, columns, columns, DType::f32};
  const Rows v = matrix.of->velocity.rows().slice(matrix.row, matrix.rows);
  const auto momentum = static_cast<float>(o.momentum);
  const auto grad_scale = static_cast<float>(o.grad_scale);
  kernels().axpby(grad_scale, g, momentum, v);
  const Tensor way = Tensor::empty({matrix.rows, columns}, DType::f32);
  kernels().convert(v, way.rows());
  if (o.nesterov) kernels().axpby(grad_scale, g, momentum, way.rows());
  const Tensor direction = orthogonal(way);
  const auto size = static_cast<float>(0.2 * std::sqrt(std::max(matrix.rows, columns)));
  bf16* const shadow = p.shadow();
  const bool has_ema = matrix.of->ema.defined();
  kernels().sgd({.w = p.value().data<float>() + first,
                 .g = direction.data<float>(),
                 .v = way.data<float>(),  // without momentum: written alone
                 .shadow = shadow == nullptr ? nullptr : shadow + first,
                 .ema = has_ema ? matrix.of->ema.data<float>() + first : nullptr,
                 .n = matrix.rows * columns,
                 .lr = static_cast<float>(matrix.of->learning_rate),
                 .momentum = 0,
                 .weight_decay = p.decays() ? static_cast<float>(o.weight_decay) : 0.0f,
                 .grad_scale = size,
                 .ema_decay = static_cast<float>(o.ema_decay),
                 .nesterov = false,
                 .decoupled_decay = true});
}

}  // namespace

Tensor orthogonal(const Tensor& x) {
  const Sides sides{x.size(0), x.size(1)};
  const double norm = std::sqrt(kernels().sum_squares(x.data<float>(), x.elements()));
  Tensor y = Tensor::zeros(x.shape(), DType::f32);
  if (norm == 0) return y;
  const int64_t n = sides.least();
  const Tensor now = Tensor::empty(x.shape(), DType::bf16);
  const Tensor gram = Tensor::empty({n, n}, DType::f32), square = Tensor::empty({n, n}, DType::f32);
  const Tensor factor = Tensor::empty({n, n}, DType::bf16);
  kernels().axpby(static_cast<float>(1 / norm), x.rows(), 0, now.rows());
  for (int i = 0; i < kSteps; ++i) {
    if (i > 0) kernels().convert(y.rows(), now.rows());
    newton_schulz_step(sides, now, gram, square, factor, y);
  }
  return y;
}

void muon_step(std::span<const MuonArgs> all, const MuonOptions& options) {
  std::vector<StoredMatrix> matrices;
  for (const MuonArgs& of : all) {
    for (const nn::Part& part : of.p->parts()) matrices.push_back({&of, part.begin, part.rows});
  }
  parallel_kernels(static_cast<int64_t>(matrices.size()),
                   [&](int64_t i) { step(matrices[static_cast<size_t>(i)], options); });
}

}  // namespace heddle::train
