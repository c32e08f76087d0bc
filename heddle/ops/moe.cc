// Top-k routing with renormalised weights; experts are few, so their loops are plain.
#include "heddle/ops/moe.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "heddle/ops/elementwise.h"

namespace heddle {
namespace {

// The k largest of n, likeliest first, the lower index before its equal; what is no number is
// least.
void largest(const float* x, int64_t n, int64_t k, int32_t* chosen) {
  const auto rank = [&](int32_t i) { return std::isnan(x[i]) ? -HUGE_VALF : x[i]; };
  std::vector<int32_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::partial_sort(order.begin(), order.begin() + k, order.end(), [&](int32_t a, int32_t b) {
    return rank(a) != rank(b) ? rank(a) > rank(b) : a < b;
  });
  std::copy_n(order.begin(), k, chosen);
}

void check_choice(const char* name, int64_t k, int64_t experts) {
  check(k >= 1 && k <= experts, ErrorKind::shape, "{}: {} of {} experts cannot be chosen", name, k,
        experts);
}

// [n] softmax in double.
std::vector<double> softmax_of(const float* x, int64_t n) {
  const double most = *std::max_element(x, x + n);
  std::vector<double> p(n);
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += p[i] = std::exp(x[i] - most);
  for (double& each : p) each /= sum;
  return p;
}

}  // namespace

Routes route(const Tensor& logits, int64_t k) {
  const int64_t rows = logits.size(0), n = logits.size(1);
  check_choice("route", k, n);
  const std::vector<float> values = logits.to_floats();
  Routes routes{std::vector<int32_t>(rows * k), Tensor::empty({rows, k}, DType::f32)};
  for (int64_t r = 0; r < rows; ++r) {
    const float* x = values.data() + r * n;
    int32_t* chosen = routes.experts.data() + r * k;
    largest(x, n, k, chosen);
    // What the softmax over all divides by falls out.
    double sum = 0;
    for (int64_t i = 0; i < k; ++i) sum += std::exp(double{x[chosen[i]]} - x[chosen[0]]);
    for (int64_t i = 0; i < k; ++i) {
      routes.weights.data<float>()[r * k + i] =
          static_cast<float>(std::exp(double{x[chosen[i]]} - x[chosen[0]]) / sum);
    }
  }
  const Tensor w = routes.weights;
  // As a softmax over the chosen: dl = w (dw - sum(w dw)).
  routes.weights = record("route", {logits}, w,
                          [w, experts = routes.experts, k, shape = logits.shape(),
                           dtype = logits.dtype()](const Tensor& dy) -> Grads {
                            std::vector<float> d(shape.elements());
                            const std::vector<float> dw = dy.to_floats();
                            const float* const weights = w.data<float>();
                            for (int64_t r = 0; r < shape[0]; ++r) {
                              double sum = 0;
                              for (int64_t i = r * k; i < (r + 1) * k; ++i)
                                sum += double{weights[i]} * dw[i];
                              for (int64_t i = r * k; i < (r + 1) * k; ++i) {
                                d[r * shape[1] + experts[i]] =
                                    static_cast<float>(weights[i] * (dw[i] - sum));
                              }
                            }
                            return {cast(Tensor::from(d, shape), dtype)};
                          });
  return routes;
}

Tensor scale_rows(const Tensor& x, const Tensor& factors) {
  const int64_t rows = x.size(0), width = x.size(1);
  check(factors.elements() == rows && factors.dtype() == DType::f32, ErrorKind::shape,
        "scale_rows: x is {}, factors {}; each row needs one", x.shape(), factors.shape());
  const auto scaled = [rows](const Tensor& from, const std::vector<float>& by) {
    Tensor y = empty_like(from);
    for (int64_t r = 0; r < rows; ++r) {
      kernels().axpby(by[r], from.rows().slice(r, 1), 0, y.rows().slice(r, 1));
    }
    return y;
  };
  const std::vector<float> by = factors.to_floats();
  return record("scale_rows", {x, factors}, scaled(x, by),
                [=, kept = x.detached(), shape = factors.shape()](const Tensor& dy) -> Grads {
                  const std::vector<float> a = kept.to_floats(), b = dy.to_floats();
                  std::vector<float> d(rows);
                  for (int64_t r = 0; r < rows; ++r) {
                    double sum = 0;
                    for (int64_t c = r * width; c < (r + 1) * width; ++c)
                      sum += double{a[c]} * b[c];
                    d[r] = static_cast<float>(sum);
                  }
                  return {scaled(dy, by), Tensor::from(d, shape)};
                });
}

Tensor balance_loss(const std::vector<Tensor>& logits, int64_t k) {
  check(!logits.empty(), ErrorKind::shape, "balance_loss: there is no router");
  const int64_t n = logits[0].size(1);
  check_choice("balance_loss", k, n);
  std::vector<double> chosen(n), mean(n);
  std::vector<std::vector<double>> softmaxes;  // [rows * experts] of each layer
  int64_t rows = 0;
  for (const Tensor& x : logits) {
    check(x.rank() == 2 && x.size(1) == n, ErrorKind::shape,
          "balance_loss: logits {} beside {}; they must be of as many experts", x.shape(),
          logits[0].shape());
    const std::vector<float> values = x.to_floats();
    std::vector<int32_t> best(k);
    std::vector<double>& all = softmaxes.emplace_back();
    for (int64_t r = 0; r < x.size(0); ++r) {
      largest(values.data() + r * n, n, k, best.data());
      for (const int32_t e : best) chosen[e] += 1;
      const std::vector<double> p = softmax_of(values.data() + r * n, n);
      for (int64_t e = 0; e < n; ++e) mean[e] += p[e];
      all.insert(all.end(), p.begin(), p.end());
    }
    rows += x.size(0);
  }
  const double each =
      rows == 0 ? 0
                : static_cast<double>(n) / (static_cast<double>(rows) * static_cast<double>(rows));
  double loss = 0;
  for (int64_t e = 0; e < n; ++e) loss += chosen[e] * mean[e] * each;
  Tensor y = Tensor::full({1}, static_cast<float>(loss));
  // d loss / d l_i = each p_i (c_i - sum_e c_e p_e) for each row.
  record_many("balance_loss", logits, {&y},
              [=, softmaxes = std::move(softmaxes)](std::span<const Tensor> dys) -> Grads {
                const double seed = dys[0].to_floats()[0];
                Grads grads;
                for (size_t i = 0; i < logits.size(); ++i) {
                  const std::vector<double>& p = softmaxes[i];
                  std::vector<float> d(p.size());
                  for (size_t r = 0; r < p.size(); r += n) {
                    double sum = 0;
                    for (int64_t e = 0; e < n; ++e) sum += chosen[e] * p[r + e];
                    for (int64_t e = 0; e < n; ++e) {
                      d[r + e] = static_cast<float>(seed * each * p[r + e] * (chosen[e] - sum));
                    }
                  }
                  grads.push_back(cast(Tensor::from(d, logits[i].shape()), logits[i].dtype()));
                }
                return grads;
              });
  return y;
}

}  // namespace heddle
