// Times recurrent, convolutional and attention layers over growing sequences.
#include "heddle/bench/layer_curve.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "heddle/bench/roof.h"
#include "heddle/ops/attention.h"
#include "heddle/ops/matmul.h"
#include "heddle/ops/recurrent/recurrence.h"

namespace heddle::bench {
namespace {

struct Layers {
  inspect::LayerSizes sizes;
  Tensor w = some_numbers({sizes.d, sizes.d}, DType::f32);

  int64_t heads() const { return sizes.d % 64 == 0 ? sizes.d / 64 : 1; }

  void recurrent(const Tensor& x) const {
    recurrence(x, {.w = w}, {}, Segments::uniform(1, x.size(0)), {.cell = RecurrentCell::tanh});
  }

  // Each position and the k - 1 after it; the last ones see less.
  void convolution(const Tensor& x) const {
    const int64_t n = x.size(0), kernel = std::min(sizes.kernel, n);
    for (int64_t j = 0; j < kernel; ++j) linear(x.slice(0, j, n - j), w, Tensor());
  }

  void attend(const Tensor& x, const Segments& blocks) const {
    attention(x, x, x, blocks, blocks, {.heads = heads()});
  }

  std::vector<std::function<void()>> all(const Tensor& x) const {
    const int64_t n = x.size(0), reach = std::min(sizes.reach, n);
    std::vector<int64_t> lengths(n / reach, reach);
    if (n % reach > 0) lengths.push_back(n % reach);
    return {[this, x] { recurrent(x); }, [this, x] { convolution(x); },
            [this, x, n] { attend(x, Segments::uniform(1, n)); },
            [this, x, blocks = Segments::from_lengths(lengths)] { attend(x, blocks); }};
  }
};

}  // namespace

std::vector<LayerTimes> layer_times(const inspect::LayerSizes& sizes, double seconds) {
  (void)inspect::layer_costs(sizes);  // checks them
  const NoGrad off;
  const Layers layers{sizes};
  std::vector<int64_t> lengths;
  for (int64_t n = 64; n < sizes.n; n *= 2) lengths.push_back(n);
  lengths.push_back(sizes.n);
  const double each = seconds / static_cast<double>(4 * lengths.size());
  std::vector<LayerTimes> curve;
  std::vector<bool> is_slow(4, false);
  for (const int64_t n : lengths) {
    const Tensor x = some_numbers({n, sizes.d}, DType::f32);
    LayerTimes times{.n = n};
    const auto kinds = layers.all(x);
    for (size_t i = 0; i < kinds.size(); ++i) {
      const double s = is_slow[i] ? -1e-3 : time_repeatedly(kinds[i], each, 1, 1).median;
      times.milliseconds.push_back(s * 1e3);
      is_slow[i] = is_slow[i] || s > seconds / 4;
    }
    curve.push_back(std::move(times));
  }
  return curve;
}

std::optional<double> crossing(const std::vector<LayerTimes>& curve, size_t i, size_t j) {
  std::optional<double> n;
  const LayerTimes* before = nullptr;
  for (const LayerTimes& times : curve) {
    const double a = times.milliseconds[i], b = times.milliseconds[j];
    if (a <= 0 || b <= 0) break;
    if (a <= b) {
      n.reset();
    } else if (!n) {
      n = static_cast<double>(times.n);
      if (before != nullptr) {
        const double gap = std::log(before->milliseconds[j] / before->milliseconds[i]);
        const double share = gap / (gap + std::log(a / b));
        n = static_cast<double>(before->n) *
            std::pow(static_cast<double>(times.n) / static_cast<double>(before->n), share);
      }
    }
    before = &times;
  }
  return n;
}

}  // namespace heddle::bench
