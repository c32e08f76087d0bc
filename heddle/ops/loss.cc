// Cross entropy in chunks of rows, so that the logits never exist at once.
#include "heddle/ops/loss.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "heddle/base/like_chunks.h"
#include "heddle/base/parallel.h"
#include "heddle/kernels/kernels.h"
#include "heddle/ops/elementwise.h"
#include "heddle/ops/matmul.h"

namespace heddle {
namespace {

// Bytes of gradients of logits that exist at a time, unless two blocks are more: a chunk of rows,
// whose part of the weight's gradient is one product.
constexpr int64_t kChunkBytes = 24 << 20;
constexpr int64_t kBlockRows = 32;
// A weight up to this size is read again for each block of rows.
constexpr int64_t kSmallWeight = 8 << 20;

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
      ++out.predicted;
    }
    out.loss = Tensor::full({1}, static_cast<float>(out.total * grad_scale));
    return out;
  }
};

void check_targets(std::span<const int32_t> targets, int64_t rows, int64_t vocab,
                   const CrossEntropyOptions& options) {
  check(options.divergence == 0 || rows % 2 == 0, ErrorKind::shape,
        "cross_entropy: {} rows are not two passes", rows);
  check(static_cast<int64_t>(targets.size()) == rows, ErrorKind::shape,
        "cross_entropy: {} targets for {} rows", targets.size(), rows);
  for (size_t r = 0; r < targets.size(); ++r) {
    check(targets[r] < vocab, ErrorKind::data, "cross_entropy: target {} of row {} is not below {}",
          targets[r], r, vocab);
  }
}

void check_pair(const char* name, const Tensor& x, const Tensor& target) {
  check(x.shape() == target.shape() && target.dtype() == DType::f32, ErrorKind::shape,
        "{}: what is predicted is {}, the target {} {}; it must be of the same shape, in f32", name,
        x.shape(), target.shape(), dtype_name(target.dtype()));
}

// dy is the gradient of the loss tensor, 1 unless somebody scaled the loss.
Tensor times(const Tensor& grad, const Tensor& dy) {
  const float factor = dy.item();
  if (factor != 1.0f) kernels().axpby(factor, grad.rows(), 0, grad.rows());
  return grad;
}

// The fused loss, in chunks of rows. Logits exist for a block of rows only, where they are needed:
// if the weight is small each thread takes blocks of its own, which stay in its cache.
class FusedLoss {
 public:
  FusedLoss(const Tensor& x, const Tensor& w, const Tensor& bias, std::span<const int32_t> targets,
            const CrossEntropyOptions& options)
      : x_(x),
        w_(w),
        bias_(bias),
        targets_(targets),
        options_(options),
        losses_(x.size(0)),
        chunks_(entries(), kBlockRows / copies(), w.size(0) * copies() * size_of(x.dtype()),
                kChunkBytes) {
    const int64_t vocab = w.size(0);
    wanted_ = needs_grad({&x, &w, &bias});
    is_small_ = w.elements() * size_of(w.dtype()) <= kSmallWeight;
    block_ = is_small_ ? kBlockRows / copies() : chunks_.longest();
    const int64_t threads = is_small_ ? num_threads() : 1;
    logits_ = Tensor::empty({threads * block_ * copies(), vocab}, DType::f32);
    if (!wanted_) return;
    dlogits_ = Tensor::empty({chunks_.longest() * copies(), vocab}, x.dtype());
    dx = empty_like(x);
    dw =
        x.size(0) > 0 ? Tensor::empty(w.shape(), DType::f32) : Tensor::zeros(w.shape(), DType::f32);
    if (bias.defined()) db = Tensor::zeros({vocab}, DType::f32);
  }
  FusedLoss(const FusedLoss&) = delete;
  FusedLoss& operator=(const FusedLoss&) = delete;
  ~FusedLoss() { forget_packed(packed_w_); }

  CrossEntropy run() {
    for (int64_t chunk = 0; chunk < chunks_.count(); ++chunk) {
      const int64_t begin = chunks_.begin(chunk), count = chunks_.begin(chunk + 1) - begin;
      const auto block = [&](int64_t i) {
        run_block(begin, i * block_, std::min(block_, count - i * block_));
      };
      const int64_t blocks = (count + block_ - 1) / block_;
      if (is_small_) {
        parallel_kernels(blocks, block);
      } else {
        for (int64_t i = 0; i < blocks; ++i) block(i);
      }
      if (wanted_) add_weight_gradients(begin, count);
    }
    return losses_.sum(targets_, options_.grad_scale);
  }

  Tensor dx, dw, db;

 private:
  int64_t copies() const { return options_.divergence > 0 ? 2 : 1; }
  /// Tokens, each of one row or of one in each half.
  int64_t entries() const { return x_.size(0) / copies(); }

  // Tokens [first, first + count) of the chunk that begins at token `begin`. In logits and dlogits
  // the rows of the second pass follow those of the first, block by block.
  void run_block(int64_t begin, int64_t first, int64_t count) {
    const int64_t at = is_small_ ? thread_index() * block_ * copies() : 0;
    const Rows l = logits_.rows().slice(at, count * copies());
    std::vector<int32_t> targets;
    std::vector<float> loss(count * copies()), nll(count * copies());
    for (int64_t c = 0; c < copies(); ++c) {
      const int64_t row = c * entries() + begin + first;
      targets.insert(targets.end(), targets_.begin() + row, targets_.begin() + row + count);
      kernels().gemm({.a = x_.rows().slice(row, count),
                      .b = w_.rows(),
                      .c = l.slice(c * count, count),
                      .bias = bias_.defined() ? bias_.data<float>() : nullptr,
                      .transpose_b = true,
                      .constant_b = packed_w_});
    }
    Rows d;
    if (wanted_) d = dlogits_.rows().slice(first * copies(), count * copies());
    kernels().cross_entropy({.logits = l,
                             .dlogits = d,
                             .targets = targets.data(),
                             .smoothing = options_.smoothing,
                             .divergence = options_.divergence,
                             .grad_scale = options_.grad_scale,
                             .loss = loss.data(),
                             .nll = nll.data()});
    for (int64_t c = 0; c < copies(); ++c) {
      const int64_t row = c * entries() + begin + first;
      std::copy_n(loss.begin() + c * count, count, losses_.loss.begin() + row);
      std::copy_n(nll.begin() + c * count, count, losses_.nll.begin() + row);
      if (!wanted_) continue;
      kernels().gemm({.a = d.slice(c * count, count),
                      .b = w_.rows(),
                      .c = dx.rows().slice(row, count),
                      .constant_b = packed_w_});
    }
  }

  // dw and db of a chunk; its rows of x are gathered in the order of dlogits.
  void add_weight_gradients(int64_t begin, int64_t count) {
    const Rows d = dlogits_.rows().slice(0, count * copies());
    Rows part = x_.rows().slice(begin, count);
    Tensor gathered;
    if (copies() == 2) {
      gathered = Tensor::empty({count * 2, x_.size(1)}, x_.dtype());
      part = gathered.rows();
      for (int64_t first = 0; first < count; first += block_) {
        const int64_t n = std::min(block_, count - first);
        for (int64_t c = 0; c < 2; ++c) {
          kernels().convert(x_.rows().slice(c * entries() + begin + first, n),
                            part.slice(first * 2 + c * n, n));
        }
      }
    }
    kernels().gemm(
        {.a = d, .b = part, .c = dw.rows(), .transpose_a = true, .accumulate = begin > 0});
    if (!db.defined()) return;
    const Tensor of_chunk = Tensor::empty({w_.size(0)}, DType::f32);
    kernels().sum_columns(d, of_chunk.data<float>());
    kernels().add(db.rows(), of_chunk.rows(), db.rows());
  }

  const Tensor &x_, &w_, &bias_;
  std::span<const int32_t> targets_;
  CrossEntropyOptions options_;
  RowLosses losses_;
  LikeChunks chunks_;  // of tokens
  uint64_t packed_w_ = new_constant();
  bool wanted_ = false, is_small_ = false;
  int64_t block_ = 0;  // tokens whose logits exist at a time
  Tensor logits_, dlogits_;
};

}  // namespace

CrossEntropy linear_cross_entropy(const Tensor& x, const Tensor& w, const Tensor& bias,
                                  std::span<const int32_t> targets,
                                  const CrossEntropyOptions& options) {
  check(x.rank() == 2 && w.rank() == 2 && x.size(1) == w.size(1) &&
            (x.dtype() == w.dtype() || w.dtype() == DType::f32),
        ErrorKind::shape,
        "linear_cross_entropy: x is {} {}, the weight is {} {}; the last axes must be equal",
        x.shape(), dtype_name(x.dtype()), w.shape(), dtype_name(w.dtype()));
  check_bias("linear_cross_entropy", bias, w.size(0));
  check_targets(targets, x.size(0), w.size(0), options);
  FusedLoss loss(x, w, bias, targets, options);
  CrossEntropy out = loss.run();
  out.loss = record("linear_cross_entropy", {x, w, bias}, out.loss,
                    [dx = loss.dx, dw = loss.dw, db = loss.db](const Tensor& dy) -> Grads {
                      return {times(dx, dy), times(dw, dy), db.defined() ? times(db, dy) : db};
                    });
  return out;
}

CrossEntropy cross_entropy(const Tensor& logits, std::span<const int32_t> targets,
                           const CrossEntropyOptions& options) {
  check_targets(targets, logits.size(0), logits.size(1), options);
  RowLosses losses(logits.size(0));
  Tensor d = needs_grad({&logits}) ? empty_like(logits) : Tensor();
  kernels().cross_entropy({.logits = logits.rows(),
                           .dlogits = d.defined() ? d.rows() : Rows{},
                           .targets = targets.data(),
                           .smoothing = options.smoothing,
                           .divergence = options.divergence,
                           .grad_scale = options.grad_scale,
                           .loss = losses.loss.data(),
                           .nll = losses.nll.data()});
  CrossEntropy out = losses.sum(targets, options.grad_scale);
  out.loss = record("cross_entropy", {logits}, out.loss,
                    [d](const Tensor& dy) -> Grads { return {times(d, dy)}; });
  return out;
}

CrossEntropy soft_cross_entropy(const Tensor& logits, const Tensor& targets, float grad_scale) {
  check_pair("soft_cross_entropy", logits, targets);
  const int64_t rows = logits.size(0), classes = logits.size(1);
  const Tensor d = Tensor::empty(logits.shape(), DType::f32);  // log p until it is the gradient
  kernels().log_softmax(logits.rows(), d.rows());
  std::vector<double> sums(static_cast<size_t>(rows));
  parallel_for(rows, [&](int64_t r) {
    for (int64_t i = r * classes; i < (r + 1) * classes; ++i) {
      float& at = d.data<float>()[i];
      const float share = targets.data<float>()[i];
      if (share != 0) sums[static_cast<size_t>(r)] -= double{share} * at;
      at = (std::exp(at) - share) * grad_scale;
    }
  });
  const double total = std::accumulate(sums.begin(), sums.end(), 0.0);
  CrossEntropy out{.loss = Tensor::full({1}, static_cast<float>(total * grad_scale)),
                   .total = total,
                   .nll = total,
                   .predicted = rows};
  const Tensor gradient = cast(d, logits.dtype());
  out.loss = record("soft_cross_entropy", {logits}, out.loss,
                    [gradient](const Tensor& dy) -> Grads { return {times(gradient, dy)}; });
  return out;
}

CrossEntropy squared_error(const Tensor& x, const Tensor& target, float grad_scale) {
  check_pair("squared_error", x, target);
  const int64_t rows = x.size(0), width = x.size(1);
  std::vector<float> d = x.to_floats();
  const float* const t = target.data<float>();
  std::vector<double> sums(static_cast<size_t>(rows));
  parallel_for(rows, [&](int64_t r) {
    for (int64_t i = r * width; i < (r + 1) * width; ++i) {
      const double difference = double{d[i]} - t[i];
      sums[r] += difference * difference;
      d[i] = static_cast<float>(2 * difference * grad_scale);
    }
  });
  double total = 0;
  for (const double sum : sums) total += sum;
  CrossEntropy out{.loss = Tensor::full({1}, static_cast<float>(total * grad_scale)),
                   .total = total,
                   .nll = total,
                   .predicted = rows};
  const Tensor gradient = cast(Tensor::from(d, {rows, width}), x.dtype());
  out.loss = record("squared_error", {x}, out.loss,
                    [gradient](const Tensor& dy) -> Grads { return {times(gradient, dy)}; });
  return out;
}

}  // namespace heddle
