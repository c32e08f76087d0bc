// Times recurrent, convolutional and attention layers over growing sequences.
#include "heddle/bench/layer_curve.h"

#include <algorithm>
#include <functional>

#include "heddle/bench/roof.h"
#include "heddle/ops/attention.h"
#include "heddle/ops/elementwise.h"
#include "heddle/ops/matmul.h"

namespace heddle::bench {
namespace {

struct Layers {
  inspect::LayerSizes sizes;
  Tensor w = some_numbers({sizes.d, sizes.d}, DType::f32);

  int64_t heads() const { return sizes.d % 64 == 0 ? sizes.d / 64 : 1; }

  void recurrent(const Tensor& x) const {
    Tensor h = Tensor::zeros({1, sizes.d}, DType::f32);
    for (int64_t i = 0; i < x.size(0); ++i) {
      h = activation(Activation::tanh, add(linear(h, w, Tensor()), x.slice(0, i, 1)));
    }
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

}  // namespace heddle::bench
