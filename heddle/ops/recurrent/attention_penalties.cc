// Sums over the weights of each row, and of each key.
#include "heddle/ops/recurrent/attention_penalties.h"

#include <algorithm>
#include <cmath>

namespace heddle {

Tensor unevenness(const Tensor& weights, const Segments& segments, const Segments& keys) {
  check(segments.count() == keys.count(), ErrorKind::shape,
        "unevenness: weights of {} sequences over {} sources; each sequence asks one of its own",
        segments.count(), keys.count());
  int64_t pairs = 0;
  for (int64_t s = 0; s < segments.count(); ++s) pairs += segments.length(s) * keys.length(s);
  check(weights.elements() == pairs && weights.dtype() == DType::f32, ErrorKind::shape,
        "unevenness: weights are {} {}, but the sequences and their sources make {} pairs, in f32",
        weights.shape(), dtype_name(weights.dtype()), pairs);
  // Of each key: 1 - the sum of its weights, the queries in order.
  std::vector<double> left(keys.rows(), 1.0);
  const auto for_pairs = [segments, keys](const auto& f) {
    int64_t pair = 0;
    for (int64_t s = 0; s < segments.count(); ++s) {
      for (int64_t r = 0; r < segments.length(s); ++r) {
        for (int64_t key = keys.begin(s); key < keys.end(s); ++key) f(pair++, key);
      }
    }
  };
  const std::vector<float> w = weights.to_floats();
  for_pairs([&](int64_t pair, int64_t key) { left[key] -= double{w[pair]}; });
  double sum = 0;
  for (const double each : left) sum += each * each;
  const double share = 1 / static_cast<double>(std::max<int64_t>(1, keys.count()));
  return record("unevenness", {weights}, Tensor::full({1}, static_cast<float>(sum * share)),
                [=, left = std::move(left), shape = weights.shape()](const Tensor& dy) -> Grads {
                  Tensor d = Tensor::empty(shape, DType::f32);
                  const double factor = -2 * share * double{dy.item()};
                  for_pairs([&](int64_t pair, int64_t key) {
                    d.data<float>()[pair] = static_cast<float>(left[key] * factor);
                  });
                  return {d};
                });
}

Tensor mean_entropy(const Tensor& weights, int64_t rows) {
  check(weights.dtype() == DType::f32 && rows >= 0, ErrorKind::shape,
        "entropy: weights are {} {} of {} rows; they must be f32", weights.shape(),
        dtype_name(weights.dtype()), rows);
  constexpr float kLeast = 1e-30f;  // below it x log x counts as 0
  std::vector<float> logs = weights.to_floats();
  double sum = 0;
  for (float& x : logs) {
    const float log = std::log(std::max(x, kLeast));
    sum -= double{x} * log;
    x = log;
  }
  const double share = 1 / static_cast<double>(std::max<int64_t>(1, rows));
  return record(
      "mean_entropy", {weights}, Tensor::full({1}, static_cast<float>(sum * share)),
      [share, logs = std::move(logs), shape = weights.shape()](const Tensor& dy) -> Grads {
        Tensor d = Tensor::empty(shape, DType::f32);
        const double factor = -share * double{dy.item()};
        float* const to = d.data<float>();
        for (size_t i = 0; i < logs.size(); ++i) {
          to[i] = static_cast<float>((double{logs[i]} + 1) * factor);
        }
        return {d};
      });
}

Tensor guided_attention_loss(const Tensor& weights, WantedWeights wanted) {
  check(weights.dtype() == DType::f32, ErrorKind::shape,
        "guided attention: weights are {}; they must be f32", dtype_name(weights.dtype()));
  for (const int64_t place : wanted.places) {
    check(place >= 0 && place < weights.elements(), ErrorKind::shape,
          "guided attention: weight {} of {}", place, weights.elements());
  }
  constexpr double kLeast = 1e-30;  // a row's weight counts as no less
  const Tensor values = weights.to_contiguous().detached();
  std::vector<double> inside;  // of each row
  double sum = 0;
  for (int64_t r = 0; r < wanted.rows(); ++r) {
    double weight = 0;
    for (int64_t i = wanted.begins[r]; i < wanted.begins[r + 1]; ++i) {
      weight += double{values.data<float>()[wanted.places[i]]};
    }
    inside.push_back(std::max(weight, kLeast));
    sum -= std::log(inside.back());
  }
  return record("guided_attention_loss", {weights}, Tensor::full({1}, static_cast<float>(sum)),
                [shape = weights.shape(), wanted = std::move(wanted),
                 inside = std::move(inside)](const Tensor& dy) -> Grads {
                  Tensor d = Tensor::zeros(shape, DType::f32);
                  const double factor = -double{dy.item()};
                  for (int64_t r = 0; r < wanted.rows(); ++r) {
                    for (int64_t i = wanted.begins[r]; i < wanted.begins[r + 1]; ++i) {
                      d.data<float>()[wanted.places[i]] += static_cast<float>(factor / inside[r]);
                    }
                  }
                  return {d};
                });
}

}  // namespace heddle
