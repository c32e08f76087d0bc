// The sinusoidal table (Vaswani et al. 2017, section 3.5), learned tables, and their ends.
#include "heddle/nn/position.h"

#include <algorithm>
#include <cmath>

namespace heddle::nn {

Tensor sinusoids(int64_t first, int64_t step, int64_t rows, int64_t width,
                 const SinusoidalOptions& options) {
  check(width % 2 == 0, ErrorKind::shape,
        "sinusoidal positions need an even width, not {}; each frequency has a sine and a cosine",
        width);
  const bool halves = options.layout == "halves";
  const bool is_t2t = options.frequencies == "tensor2tensor";
  const int64_t half = width / 2;
  const Tensor table = Tensor::empty({rows, width}, DType::f32);
  for (int64_t i = 0; i < half; ++i) {
    const double exponent =
        is_t2t ? static_cast<double>(i) / static_cast<double>(std::max<int64_t>(1, half - 1))
               : 2.0 * static_cast<double>(i) / static_cast<double>(width);
    const double frequency = std::pow(10000.0, -exponent);
    for (int64_t r = 0; r < rows; ++r) {
      float* row = table.data<float>() + r * width;
      const double angle = static_cast<double>(first + r * step) * frequency;
      row[halves ? i : 2 * i] = static_cast<float>(std::sin(angle));
      row[halves ? half + i : 2 * i + 1] = static_cast<float>(std::cos(angle));
    }
  }
  return table;
}

Tensor sinusoidal_table(int64_t positions, int64_t width, const SinusoidalOptions& options) {
  const Tensor table = Tensor::zeros({options.offset + positions, width}, DType::f32);
  sinusoids(options.offset, 1, positions, width, options)
      .copy_to(table.slice(0, options.offset, positions));
  return table;
}

std::vector<int32_t> relative_buckets(int64_t buckets, int64_t distance, bool is_causal) {
  const int64_t each = is_causal ? buckets : buckets / 2, exact = each / 2;
  const auto all_logs =
      static_cast<float>(std::log(static_cast<double>(distance) / static_cast<double>(exact)));
  std::vector<int32_t> result;
  for (int64_t d = -distance; d <= distance; ++d) {
    int64_t bucket = is_causal ? std::max<int64_t>(0, -d) : std::abs(d);
    if (bucket >= exact) {
      const float ratio = static_cast<float>(bucket) / static_cast<float>(exact);
      const float share = std::log(ratio) / all_logs * static_cast<float>(each - exact);
      bucket = std::min(each - 1, exact + static_cast<int64_t>(share));
    }
    result.push_back(static_cast<int32_t>(!is_causal && d > 0 ? each + bucket : bucket));
  }
  return result;
}

Positions Positions::learned(Parameter& table, int64_t offset) {
  Positions p;
  p.learned_ = &table;
  p.options_.offset = offset;
  return p;
}

// A config can promise more positions than memory holds.
Positions Positions::sinusoidal(int64_t positions, int64_t width,
                                const SinusoidalOptions& options) {
  constexpr int64_t kMostNumbers = 1 << 24;
  Positions p;
  const int64_t most = std::max<int64_t>(1, kMostNumbers / std::max<int64_t>(1, width));
  p.fixed_ = sinusoidal_table(std::min(positions, most), width, options);
  p.options_ = options;
  return p;
}

// Sinusoidal positions run on beyond the training length; learned ones end.
Tensor Positions::table(int64_t needed, const Run& run) const {
  if (learned_ != nullptr) {
    const int64_t count = learned_->shape()[0] - offset();
    check(needed <= count, ErrorKind::data,
          "a sentence of {} tokens is longer than the {} learned positions of the model; cut it",
          needed, count);
    return learned_->in(run.compute);
  }
  if (!fixed_.defined() || offset() + needed <= fixed_.size(0)) return fixed_;
  return sinusoidal_table(needed, fixed_.size(1), options_);
}

}  // namespace heddle::nn
