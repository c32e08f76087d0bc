// Adam and AdamW by hand, the moving average, and what a gradient of parts is.
#include "heddle/train/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "heddle/base/parallel.h"
#include "heddle/data/batches.h"
#include "heddle/models/transformer.h"
#include "heddle/train/batches/corpora.h"
#include "heddle/train/tasks/losses.h"
#include "tests/base/temporary.h"
#include "tests/train/small_run.h"

namespace heddle::train {
namespace {

using testing::small_config;
using testing::TempDir;

struct OneMatrix {
  nn::Parameters parameters{1};
  nn::Parameter* w;
  OneMatrix() { w = &nn::Scope(parameters, "w").parameter(Shape({2, 2}), nn::Init::ones()); }
  void gradient(float value) { w->grad() = Tensor::full(Shape({2, 2}), value, DType::f32); }
  float first() const { return w->value().data<float>()[0]; }
};

TEST(Optimizer, first_step_of_adam_is_the_learning_rate_whatever_the_gradient) {
  for (const float g : {1e-3f, 1.0f, 1e3f}) {
    OneMatrix m;
    Optimizer adam(m.parameters, {});
    m.gradient(g);
    adam.step(0.01, 1);
    EXPECT_NEAR(m.first(), 1 - 0.01, 1e-6) << g;
  }
}

TEST(Optimizer, two_steps_of_adam_equal_the_formula) {
  OneMatrix m;
  Optimizer adam(m.parameters, {.beta1 = 0.9, .beta2 = 0.98, .eps = 1e-9});
  double w = 1, mean = 0, square = 0;
  for (int t = 1; t <= 2; ++t) {
    const double g = t == 1 ? 0.5 : -2;
    m.gradient(static_cast<float>(g));
    adam.step(0.1, 1);
    mean = 0.9 * mean + 0.1 * g;
    square = 0.98 * square + 0.02 * g * g;
    w -= 0.1 * (mean / (1 - std::pow(0.9, t))) /
         (std::sqrt(square / (1 - std::pow(0.98, t))) + 1e-9);
  }
  EXPECT_NEAR(m.first(), w, 1e-6);
}

// v = momentum v + g + decay w; w -= lr (g + decay w + momentum v), of vectors without decay.
TEST(Optimizer, three_steps_of_sgd_equal_the_formula_of_torch) {
  for (const bool nesterov : {false, true}) {
    for (const bool decoupled : {false, true}) {
      OneMatrix m;
      nn::Parameter& bias = nn::Scope(m.parameters, "b").parameter({2}, nn::Init::ones());
      Optimizer sgd(m.parameters, {.is_sgd = true,
                                   .decoupled_decay = decoupled,
                                   .momentum = 0.8,
                                   .nesterov = nesterov,
                                   .weight_decay = 0.1});
      double w = 1, v = 0, b = 1, vb = 0;
      const auto step = [&](double& x, double& velocity, double gradient, double decay) {
        const double g = gradient + (decoupled ? 0 : decay * x);
        velocity = 0.8 * velocity + g;
        x -= 0.05 * ((nesterov ? g + 0.8 * velocity : velocity) + (decoupled ? decay * x : 0));
      };
      for (const double g : {0.5, -2.0, 1.5}) {
        m.gradient(static_cast<float>(g));
        bias.grad() = Tensor::full({2}, static_cast<float>(g), DType::f32);
        sgd.step(0.05, 1);
        step(w, v, g, 0.1), step(b, vb, g, 0);
      }
      EXPECT_NEAR(m.first(), w, 1e-6) << nesterov << decoupled;
      EXPECT_NEAR(bias.value().data<float>()[0], b, 1e-6);
    }
  }
}

TEST(Optimizer, buffers_are_averaged_but_not_decayed_or_counted) {
  nn::Parameters all(1);
  const nn::Scope s(all);
  s.parameter({2, 2}, nn::Init::ones());
  nn::Parameter& mean = (s / "mean").buffer(3, nn::Init::ones());
  EXPECT_EQ(all.elements(), 4);
  Optimizer adam(all, {.decoupled_decay = true, .weight_decay = 0.5, .ema_decay = 0.1});
  EXPECT_FALSE(adam.moments()[1].m.defined());
  mean.value().data<float>()[0] = 5;
  adam.step(0.1, 1);
  EXPECT_EQ(mean.value().to_floats(), (std::vector<float>{5, 1, 1}));
  EXPECT_NEAR(adam.moments()[1].ema.data<float>()[0], 0.1 * 1 + 0.9 * 5, 1e-6);
}

TEST(Optimizer, weight_decay_of_adam_goes_through_the_moments_and_that_of_adamw_does_not) {
  // With no gradient AdamW shrinks the weight by lr * decay; Adam takes the decay for a gradient,
  // so that its first step is lr.
  OneMatrix l2, decoupled;
  Optimizer adam(l2.parameters, {.weight_decay = 0.1});
  Optimizer adamw(decoupled.parameters, {.decoupled_decay = true, .weight_decay = 0.1});
  l2.gradient(0);
  decoupled.gradient(0);
  adam.step(0.01, 1);
  adamw.step(0.01, 1);
  EXPECT_NEAR(l2.first(), 1 - 0.01, 1e-6);
  EXPECT_NEAR(decoupled.first(), 1 - 0.01 * 0.1, 1e-7);
}

TEST(Optimizer, vectors_are_not_decayed) {
  nn::Parameters parameters(1);
  nn::Parameter& bias = nn::Scope(parameters, "b").parameter(Shape({3}), nn::Init::ones());
  Optimizer adamw(parameters, {.decoupled_decay = true, .weight_decay = 0.5});
  bias.grad() = Tensor::zeros(Shape({3}), DType::f32);
  adamw.step(0.1, 1);
  EXPECT_EQ(bias.value().data<float>()[0], 1);
}

TEST(Optimizer, gradient_scale_multiplies_the_gradient) {
  OneMatrix scaled, plain;
  Optimizer a(scaled.parameters, {.eps = 1}), b(plain.parameters, {.eps = 1});
  scaled.gradient(8);
  plain.gradient(2);
  a.step(0.1, 0.25);
  b.step(0.1, 1);
  EXPECT_EQ(scaled.first(), plain.first());
}

TEST(Optimizer, average_follows_the_weights_with_a_window_that_grows) {
  OneMatrix m;
  Optimizer adam(m.parameters, {.ema_decay = 0.99});
  m.gradient(1);
  adam.step(0.1, 1);
  const double decay = 2.0 / 11;  // (1 + t) / (10 + t) at t = 1
  EXPECT_NEAR(adam.moments()[0].ema.data<float>()[0], decay * 1 + (1 - decay) * m.first(), 1e-6);
}

TEST(Optimizer, norm_is_that_of_all_gradients_together) {
  OneMatrix m;
  nn::Parameter& b = nn::Scope(m.parameters, "b").parameter(Shape({1}), nn::Init::zeros());
  Optimizer adam(m.parameters, {});
  m.gradient(2);  // four of them
  b.grad() = Tensor::full(Shape({1}), 3, DType::f32);
  EXPECT_NEAR(adam.gradient_norm(), 5, 1e-12);
}

TEST(Optimizer, gradient_that_is_not_finite_is_named) {
  OneMatrix m;
  Optimizer adam(m.parameters, {});
  m.gradient(1);
  EXPECT_EQ(adam.first_bad_gradient(), "");
  m.gradient(std::numeric_limits<float>::infinity());
  EXPECT_NE(adam.first_bad_gradient().find("w"), std::string::npos);
}

TEST(Optimizer, gradient_of_another_size_than_the_weight_is_a_shape_error) {
  OneMatrix m;
  Optimizer adam(m.parameters, {});
  for (const Shape& shape : {Shape{1, 2}, Shape{3, 2}}) {
    m.w->grad() = Tensor::full(shape, 1);
    expect_error(ErrorKind::shape, {"w is [2, 2]", shape.str()}, [&] { adam.step(0.1, 1); });
    expect_error(ErrorKind::shape, {"w is [2, 2]"}, [&] { adam.gradient_norm(); });
  }
  EXPECT_EQ(adam.updates(), 0);
  EXPECT_EQ(m.first(), 1);
}

TEST(Optimizer, elements_and_parameters_that_there_are_not_are_shape_errors) {
  OneMatrix m;
  for (const ElementRange& range : {ElementRange{0, 5}, ElementRange{3, 2}, ElementRange{-1, 2},
                                    ElementRange{0, -1}, ElementRange{0, 400000000}}) {
    expect_error(ErrorKind::shape, {"of 4"}, [&] { Optimizer(m.parameters, {}, {range}); });
  }
  expect_error(ErrorKind::shape, {"0 ranges", "1 parameters"},
               [&] { Optimizer(m.parameters, {}, std::vector<ElementRange>()); });
  Optimizer adam(m.parameters, {}, {{1, 2}});
  expect_error(ErrorKind::shape, {"no parameter 1"}, [&] { adam.set_rate_factor(1, 2); });
  m.gradient(1);
  adam.step(0.1, 1);
  EXPECT_EQ(m.first(), 1);
}

TEST(WeightSwap, weights_come_back_at_the_end_of_its_scope) {
  OneMatrix m;
  {
    const WeightSwap swap(m.parameters, {Tensor::full(Shape({2, 2}), 7, DType::f32)});
    EXPECT_EQ(m.first(), 7);
  }
  EXPECT_EQ(m.first(), 1);
}

// Gradients of the whole first batch, computed in `parts` parts.
struct Gradients {
  std::vector<float> values;
  LossSums sums;
};

Gradients gradients(const TrainConfig& config, const Corpora& corpora, int64_t parts, int threads,
                    const std::string& precision) {
  const int before = num_threads();
  set_num_threads(threads);
  nn::Parameters parameters(1);
  const auto made = config.stack.make(nn::Scope(parameters));
  const EncoderDecoder& model = *made->as<EncoderDecoder>();
  nn::Run run;
  run.compute = precision == "bf16" ? DType::bf16 : DType::f32;
  run.dropout.seed = 1;
  run.dropout.update = 1;
  run.dropout.training = true;
  const PairLengths lengths{corpora.train.source_lengths(), corpora.train.target_lengths()};
  std::vector<int64_t> pairs(24);
  std::iota(pairs.begin(), pairs.end(), 0);
  Gradients g;
  for (const auto& part : split_batch(lengths, pairs, parts)) {
    g.sums += accumulate_gradients(
        model, make_translation_batch(corpora.train, part, corpora.marks), run, 0.1);
  }
  for (const auto& p : parameters.all()) {
    const float* values = p->grad().data<float>();
    g.values.insert(g.values.end(), values, values + p->elements());
  }
  set_num_threads(before);
  return g;
}

class Accumulation : public ::testing::Test {
 protected:
  Accumulation() {
    testing::write_pairs(folder_ / "data");
    config_ = small_config();
    corpora_.emplace(
        open_corpora(config_, {.data = (folder_ / "data").string()}, folder_.path().string()));
  }
  TempDir folder_;
  TrainConfig config_;
  std::optional<Corpora> corpora_;
};

TEST_F(Accumulation, gradient_of_a_batch_in_parts_equals_the_whole_within_rounding) {
  const Gradients whole = gradients(config_, *corpora_, 1, 1, "f32");
  double largest = 0;
  for (const float v : whole.values) largest = std::max(largest, std::abs(double{v}));
  for (const int64_t parts : {2, 3, 5}) {
    const Gradients g = gradients(config_, *corpora_, parts, 1, "f32");
    EXPECT_EQ(g.sums.predicted, whole.sums.predicted);
    // Dropout too is that of the whole: masks are drawn by pair, not by batch.
    EXPECT_NEAR(g.sums.loss, whole.sums.loss, 1e-5 * whole.sums.loss);
    double apart = 0;
    for (size_t i = 0; i < g.values.size(); ++i) {
      ASSERT_TRUE(std::isfinite(g.values[i])) << i;
      apart = std::max(apart, std::abs(double{g.values[i]} - whole.values[i]));
    }
    EXPECT_LT(apart, 2e-5 * largest) << parts;  // f32: some hundred rows a sum
    EXPECT_GT(apart, 0);                        // sums in another order
  }
}

TEST_F(Accumulation, gradient_has_the_same_bits_for_any_number_of_threads) {
  for (const char* precision : {"f32", "bf16"}) {
    for (const int64_t parts : {1, 3}) {
      const Gradients one = gradients(config_, *corpora_, parts, 1, precision);
      for (const int threads : {2, 3}) {
        EXPECT_EQ(one.values, gradients(config_, *corpora_, parts, threads, precision).values)
            << precision << " " << parts << " " << threads;
      }
    }
  }
}

}  // namespace
}  // namespace heddle::train
