// The checks that each case of an op goes through.
#include "tests/support/op_case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "heddle/base/parallel.h"
#include "heddle/ops/elementwise.h"
#include "heddle/ops/reduce.h"

namespace heddle {
namespace {

struct Result {
  std::vector<std::vector<float>> values, gradients;
  bool operator==(const Result&) const = default;
};

std::vector<float> normal(int64_t n, uint32_t seed, float offset) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> distribution(offset, 1);
  std::vector<float> values(n);
  for (float& v : values) v = distribution(generator);
  return values;
}

std::vector<std::vector<float>> input_values(const OpCase& c) {
  std::vector<std::vector<float>> values;
  for (size_t i = 0; i < c.shapes.size(); ++i) {
    values.push_back(normal(c.shapes[i].elements(), static_cast<uint32_t>(i + 1), c.offset));
  }
  return values;
}

DType dtype_of_input(const OpCase& c, size_t i, DType dtype) {
  for (int f : c.always_f32) {
    if (static_cast<size_t>(f) == i) return DType::f32;
  }
  return dtype;
}

Tensor as(const std::vector<float>& values, const Shape& shape, DType dtype) {
  NoGrad off;
  return cast(Tensor::from(values, shape), dtype);
}

/// The weights that turn output `i` into a loss.
std::vector<float> weights(int64_t n, size_t i) {
  return normal(n, static_cast<uint32_t>(100 + i), 0);
}

std::vector<float> rounded(const std::vector<float>& values) {
  std::vector<float> r;
  for (const float v : values) r.push_back(static_cast<float>(bf16(v)));
  return r;
}

/// Values and gradients of sum_i dot(output i, weights i). is_rounded: in f32, but of inputs and
/// weights that bf16 holds.
Result evaluate(const OpCase& c, const OpFunction& f, DType dtype, bool is_rounded = false) {
  const auto values = input_values(c);
  std::vector<Leaf> leaves(c.shapes.size());
  Tensors inputs = case_inputs(c, dtype, leaves);
  for (size_t i = 0; is_rounded && i < inputs.size(); ++i) {
    if (dtype_of_input(c, i, DType::bf16) != DType::bf16) continue;
    inputs[i] = Tensor::from(rounded(values[i]), c.shapes[i]).with_leaf(&leaves[i]);
  }
  Result r;
  Tensor loss;
  const Tensors outputs = f(inputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].defined()) continue;
    r.values.push_back(outputs[i].to_floats());
    std::vector<float> of_loss = weights(outputs[i].elements(), i);
    if (is_rounded) of_loss = rounded(of_loss);
    const Tensor w = as(of_loss, outputs[i].shape(), outputs[i].dtype());
    const Tensor part = dot(outputs[i], w);
    loss = loss.defined() ? add(loss, part) : part;
  }
  backward(loss);
  for (size_t i = 0; i < leaves.size(); ++i) {
    r.gradients.push_back(leaves[i].grad.defined() ? leaves[i].grad.to_floats()
                                                   : std::vector<float>(values[i].size()));
  }
  return r;
}

double loss_of(const OpCase& c, const std::vector<std::vector<float>>& values) {
  NoGrad off;
  Tensors inputs;
  for (size_t i = 0; i < values.size(); ++i) {
    inputs.push_back(Tensor::from(values[i], c.shapes[i]));
  }
  double loss = 0;
  const Tensors outputs = c.function(inputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].defined()) continue;
    const std::vector<float> y = outputs[i].to_floats(), w = weights(outputs[i].elements(), i);
    for (size_t j = 0; j < y.size(); ++j) loss += static_cast<double>(y[j]) * w[j];
  }
  return loss;
}

// |a - b| against the largest value of the tensor: sums cancel, their rounding does not.
void expect_close(const std::vector<float>& a, const std::vector<float>& b, double tolerance,
                  const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  double largest = 1;
  for (float v : b) largest = std::max<double>(largest, std::fabs(v));
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_NEAR(a[i], b[i], tolerance * largest) << what << ", element " << i;
  }
}

}  // namespace

Tensors case_inputs(const OpCase& c, DType dtype, std::span<Leaf> leaves) {
  const auto values = input_values(c);
  Tensors inputs;
  for (size_t i = 0; i < values.size(); ++i) {
    inputs.push_back(as(values[i], c.shapes[i], dtype_of_input(c, i, dtype)).with_leaf(&leaves[i]));
  }
  return inputs;
}

void expect_forward_is_right(const OpCase& c) {
  ASSERT_TRUE(c.plain || c.reference) << "the case has no oracle";
  if (!c.plain) return;
  const std::vector<double> want = c.plain(input_values(c));
  const std::vector<float> got = evaluate(c, c.function, DType::f32).values[0];
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], want[i], 1e-5 * (1 + std::fabs(want[i]))) << "element " << i;
  }
}

// Central differences in f32: with a step of 2^-7 the rounding of a loss of size L is 1e-7 L / step
// = 1e-5 L, and the third derivative adds step^2 / 6 = 1e-5 of its size; 1e-2 leaves room for sums.
void expect_gradients_are_finite_differences(const OpCase& c) {
  const Result r = evaluate(c, c.function, DType::f32);
  auto values = input_values(c);
  constexpr float kStep = 0x1p-7f;
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t stride = std::max<size_t>(1, values[i].size() / 64);  // at most some 64 elements
    for (size_t j = 0; j < values[i].size(); j += stride) {
      const float before = values[i][j];
      values[i][j] = before + kStep;
      const double up = loss_of(c, values), high = values[i][j];
      values[i][j] = before - kStep;
      const double down = loss_of(c, values), low = values[i][j];
      values[i][j] = before;
      const double want = (up - down) / (high - low);
      ASSERT_NEAR(r.gradients[i][j], want, 1e-2 * (1 + std::fabs(want)))
          << "input " << i << ", element " << j;
    }
  }
}

void expect_equals_reference(const OpCase& c) {
  if (!c.reference) return;
  const Result fused = evaluate(c, c.function, DType::f32);
  const Result plain = evaluate(c, c.reference, DType::f32);
  ASSERT_EQ(fused.values.size(), plain.values.size());
  for (size_t i = 0; i < fused.values.size(); ++i) {
    expect_close(fused.values[i], plain.values[i], 2e-5, fmt::format("output {}", i));
  }
  for (size_t i = 0; i < fused.gradients.size(); ++i) {
    expect_close(fused.gradients[i], plain.gradients[i], 2e-5,
                 fmt::format("gradient of input {}", i));
  }
}

namespace {

double norm_of(const std::vector<float>& a) {
  double sum = 0;
  for (const float v : a) sum += static_cast<double>(v) * v;
  return std::sqrt(sum);
}

/// The largest |a - b| / |b|, of tensors one by one.
double distance(const std::vector<std::vector<float>>& a,
                const std::vector<std::vector<float>>& b) {
  double largest = 0;  // root mean square
  for (const auto& x : b) {
    if (!x.empty()) largest = std::max(largest, norm_of(x) / std::sqrt(double(x.size())));
  }
  double error = a.size() == b.size() ? 0 : std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    std::vector<float> difference = a[i];
    if (difference.size() != b[i].size()) return std::numeric_limits<double>::infinity();
    for (size_t j = 0; j < difference.size(); ++j) difference[j] -= b[i][j];
    const double allowed = 0x1p-9 * largest * std::sqrt(double(b[i].size()));
    const double over = norm_of(difference) - allowed;
    if (!std::isfinite(over)) return std::numeric_limits<double>::infinity();
    if (over > 0) error = std::max(error, over / std::max(norm_of(b[i]), allowed));
  }
  return error;
}

}  // namespace

double bf16_error(const OpCase& c) {
  if (!c.has_bf16) return 0;
  const Result got = evaluate(c, c.function, DType::bf16);
  const Result want = evaluate(c, c.function, DType::f32, true);
  return std::max(distance(got.values, want.values), distance(got.gradients, want.gradients));
}

void expect_same_bits_for_any_threads(const OpCase& c, DType dtype) {
  if (dtype == DType::bf16 && !c.has_bf16) return;
  const int before = num_threads();
  set_num_threads(1);
  const Result one = evaluate(c, c.function, dtype);
  set_num_threads(4);
  const Result four = evaluate(c, c.function, dtype);
  set_num_threads(before);
  EXPECT_TRUE(one == four) << "1 and 4 threads differ";
}

void expect_memory_does_not_matter(const OpCase& c, DType dtype) {
  if (dtype == DType::bf16 && !c.has_bf16) return;
  const Result as_is = evaluate(c, c.function, dtype);
  set_fill_allocations(true);
  const Result filled = evaluate(c, c.function, dtype);
  set_fill_allocations(false);
  EXPECT_TRUE(as_is == filled) << "memory filled with NaN changes the result";
}

}  // namespace heddle
