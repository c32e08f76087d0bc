// Cross entropy in chunks of rows, so that the logits never exist at once.
#include "heddle/ops/loss.h"

#include <algorithm>

#include "heddle/kernels/kernels.h"
#include "heddle/ops/matmul.h"

namespace heddle {
namespace {

// Bytes of f32 logits that exist at a time; rows per chunk are a function of the vocabulary only.
constexpr int64_t kChunkBytes = 20 << 20;

int64_t chunk_rows(int64_t vocab) {
  return std::max<int64_t>(256, kChunkBytes / (4 * vocab) / 256 * 256);
}

// Per-row losses of a batch, summed in order.
struct RowLosses {
  std::vector<float> loss, nll;
  explicit RowLosses(int64_t rows) : loss(rows), nll(rows) {}
  CrossEntropy sum(std::span<const int32_t> targets, float grad_scale) const {
    CrossEntropy out;
    for (size_t r = 0; r < targets.size(); ++r) {
      if (targets[r] < 0) continue;
      out.total += loss[r];
      out.nll += nll[r];
      ++out.words;
    }
    out.loss = Tensor::full({1}, static_cast<float>(out.total * grad_scale));
    return out;
  }
};

void check_targets(std::span<const int32_t> targets, int64_t rows, int64_t vocab) {
  check(static_cast<int64_t>(targets.size()) == rows, ErrorKind::shape,
        "cross_entropy: {} targets for {} rows", targets.size(), rows);
  for (size_t r = 0; r < targets.size(); ++r) {
    check(targets[r] < vocab, ErrorKind::data, "cross_entropy: target {} of row {} is not below {}",
          targets[r], r, vocab);
  }
}

// dy is the gradient of the loss tensor, 1 unless somebody scaled the loss.
Tensor times(const Tensor& grad, const Tensor& dy) {
  const float factor = dy.item();
  if (factor != 1.0f) kernels().axpby(factor, grad.rows(), 0, grad.rows());
  return grad;
}

}  // namespace

CrossEntropy linear_cross_entropy(const Tensor& x, const Tensor& w, const Tensor& bias,
                                  std::span<const int32_t> targets,
                                  const CrossEntropyOptions& options) {
  const int64_t rows = x.size(0), vocab = w.size(0);
  check_targets(targets, rows, vocab);
  const bool wanted = needs_grad({&x, &w, &bias});
  RowLosses losses(rows);
  Tensor dx, dw, db;
  if (wanted) {
    dx = empty_like(x);
    dw = rows > 0 ? Tensor::empty(w.shape(), DType::f32) : Tensor::zeros(w.shape(), DType::f32);
    if (bias.defined()) db = Tensor::zeros({vocab}, DType::f32);
  }
  const int64_t chunk = std::min(chunk_rows(vocab), std::max<int64_t>(rows, 1));
  const Tensor logits = Tensor::empty({chunk, vocab}, DType::f32);
  const Tensor dlogits = wanted ? Tensor::empty({chunk, vocab}, x.dtype()) : Tensor();
  const Tensor db_chunk = db.defined() ? Tensor::empty({vocab}, DType::f32) : Tensor();
  for (int64_t begin = 0; begin < rows; begin += chunk) {
    const int64_t count = std::min(chunk, rows - begin);
    const Rows part = x.rows().slice(begin, count), l = logits.rows().slice(0, count);
    const Rows d = wanted ? dlogits.rows().slice(0, count) : Rows{};
    kernels().gemm({.a = part,
                    .b = w.rows(),
                    .c = l,
                    .bias = bias.defined() ? bias.data<float>() : nullptr,
                    .transpose_b = true});
    kernels().cross_entropy({.logits = l,
                             .dlogits = d,
                             .targets = targets.data() + begin,
                             .smoothing = options.smoothing,
                             .grad_scale = options.grad_scale,
                             .loss = losses.loss.data() + begin,
                             .nll = losses.nll.data() + begin});
    if (!wanted) continue;
    kernels().gemm({.a = d, .b = w.rows(), .c = dx.rows().slice(begin, count)});
    kernels().gemm(
        {.a = d, .b = part, .c = dw.rows(), .transpose_a = true, .accumulate = begin > 0});
    if (db.defined()) {
      kernels().sum_columns(d, db_chunk.data<float>());
      kernels().add(db.rows(), db_chunk.rows(), db.rows());
    }
  }
  CrossEntropy out = losses.sum(targets, options.grad_scale);
  out.loss = record("linear_cross_entropy", {x, w, bias}, out.loss,
                    [dx, dw, db](const Tensor& dy) -> Grads {
                      return {times(dx, dy), times(dw, dy), db.defined() ? times(db, dy) : db};
                    });
  return out;
}

CrossEntropy linear_cross_entropy_reference(const Tensor& x, const Tensor& w, const Tensor& bias,
                                            std::span<const int32_t> targets,
                                            const CrossEntropyOptions& options) {
  return cross_entropy(linear(x, w, bias), targets, options);
}

CrossEntropy cross_entropy(const Tensor& logits, std::span<const int32_t> targets,
                           const CrossEntropyOptions& options) {
  check_targets(targets, logits.size(0), logits.size(1));
  RowLosses losses(logits.size(0));
  Tensor d = needs_grad({&logits}) ? empty_like(logits) : Tensor();
  kernels().cross_entropy({.logits = logits.rows(),
                           .dlogits = d.defined() ? d.rows() : Rows{},
                           .targets = targets.data(),
                           .smoothing = options.smoothing,
                           .grad_scale = options.grad_scale,
                           .loss = losses.loss.data(),
                           .nll = losses.nll.data()});
  CrossEntropy out = losses.sum(targets, options.grad_scale);
  out.loss = record("cross_entropy", {logits}, out.loss,
                    [d](const Tensor& dy) -> Grads { return {times(d, dy)}; });
  return out;
}

}  // namespace heddle
