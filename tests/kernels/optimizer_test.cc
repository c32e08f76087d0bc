// Adam by hand and against float64.
#include "tests/kernels/kernel_case.h"

namespace heddle::kernel_test {
namespace {

// n weights, their gradients and their state.
struct AdamCase {
  std::vector<float> w, g, m, v, ema;
  std::vector<bf16> shadow;
  AdamArgs args;
  explicit AdamCase(int64_t n) : w(n), g(n), m(n, 0), v(n, 0), ema(n), shadow(n) {
    std::mt19937 generator(1);
    std::normal_distribution<float> normal;
    for (float& x : w) x = normal(generator);
    for (float& x : g) x = normal(generator);
    ema = w;
    args = {.w = w.data(),
            .g = g.data(),
            .m = m.data(),
            .v = v.data(),
            .shadow = shadow.data(),
            .ema = ema.data(),
            .n = n,
            .lr = 0.01f};
  }
  void step(int t) {
    args.bias_correction1 = 1 - std::pow(args.beta1, static_cast<float>(t));
    args.bias_correction2 = 1 - std::pow(args.beta2, static_cast<float>(t));
    kernels().adam(args);
  }
};

TEST(Adam, three_steps_on_one_weight_equal_those_by_hand) {
  // w = 1, lr = 0.1, beta = (0.9, 0.999), eps = 1e-8, gradients 0.5, -0.25, 1:
  // t = 1: m = 0.05, v = 2.5e-4; m^ = 0.5, v^ = 0.25; w = 1 - 0.1 * 0.5 / 0.5 = 0.9
  // t = 2: m = 0.02, v = 3.1225e-4; m^ = 0.02 / 0.19, v^ = 3.1225e-4 / 1.999e-3;
  //        w = 0.9 - 0.1 * 0.1052632 / 0.3952273 = 0.8733665
  // t = 3: m = 0.118, v = 1.31193775e-3; m^ = 0.118 / 0.271, v^ = 1.31193775e-3 / 2.997001e-3;
  //        w = 0.8733665 - 0.1 * 0.4354244 / 0.6616266 = 0.8075551
  for_each_target([] {
    AdamCase a(1);
    a.w[0] = 1;
    a.args.lr = 0.1f;
    const float gradients[] = {0.5f, -0.25f, 1};
    const double weights[] = {0.9, 0.8733665, 0.8075551};
    for (int t = 1; t <= 3; ++t) {
      a.g[0] = gradients[t - 1];
      a.step(t);
      EXPECT_NEAR(a.w[0], weights[t - 1], 2e-6) << "step " << t;
    }
    EXPECT_NEAR(a.m[0], 0.118, 1e-7);
    EXPECT_NEAR(a.v[0], 1.31193775e-3, 3e-8);  // 1 - 0.999f is 1.3e-5 from 0.001
  });
}

void expect_steps_match_float64(int64_t n, bool decoupled, float decay) {
  AdamCase a(n);
  a.args.weight_decay = decay;
  a.args.decoupled_decay = decoupled;
  a.args.grad_scale = 0.25f;
  a.args.ema_decay = 0.9f;
  std::vector<double> w(a.w.begin(), a.w.end()), m(n, 0), v(n, 0), ema = w;
  const double b1 = a.args.beta1, b2 = a.args.beta2, lr = a.args.lr;
  for (int t = 1; t <= 3; ++t) {
    a.step(t);
    for (int64_t i = 0; i < n; ++i) {
      const double g = 0.25 * a.g[i] + (decoupled ? 0 : decay * w[i]);
      m[i] = b1 * m[i] + (1 - b1) * g;
      v[i] = b2 * v[i] + (1 - b2) * g * g;
      const double change =
          m[i] / (1 - std::pow(b1, t)) / (std::sqrt(v[i] / (1 - std::pow(b2, t))) + 1e-8);
      w[i] -= lr * change + (decoupled ? lr * decay * w[i] : 0);
      ema[i] = 0.9 * ema[i] + 0.1 * w[i];
      ASSERT_NEAR(a.w[i], w[i], 1e-5 * (std::fabs(w[i]) + lr)) << i << " of " << n;
      ASSERT_NEAR(a.ema[i], ema[i], 1e-5 * (std::fabs(ema[i]) + lr));
      ASSERT_EQ(a.shadow[i].bits, bf16(a.w[i]).bits);
    }
  }
}

TEST(Adam, every_length_and_kind_of_decay_matches_float64) {
  for_each_target([] {
    for (int64_t n : ragged_widths()) {
      expect_steps_match_float64(n, false, 0);
      expect_steps_match_float64(n, false, 0.1f);
      expect_steps_match_float64(n, true, 0.1f);
    }
  });
}

TEST(Adam, decays_of_adam_and_adamw_differ) {
  AdamCase coupled(8), decoupled(8);
  coupled.args.weight_decay = decoupled.args.weight_decay = 0.5f;
  decoupled.args.decoupled_decay = true;
  coupled.step(1);
  decoupled.step(1);
  EXPECT_NE(coupled.w, decoupled.w);
}

TEST(Adam, shadow_and_ema_may_be_absent) {
  for_each_target([] {
    AdamCase with(37), without(37);
    without.args.shadow = nullptr;
    without.args.ema = nullptr;
    with.step(1);
    without.step(1);
    EXPECT_EQ(with.w, without.w);
    EXPECT_EQ(without.ema, AdamCase(37).ema);
  });
}

TEST(Adam, zero_gradient_and_state_leave_the_weight) {
  AdamCase a(5);
  std::fill(a.g.begin(), a.g.end(), 0.0f);
  const std::vector<float> before = a.w;
  a.step(1);
  EXPECT_EQ(a.w, before);
}

TEST(Adam, threads_do_not_change_bits) {
  expect_same_bits_for_any_threads([] {
    AdamCase a(100'003);
    a.step(1);
    a.step(2);
    return a.w;
  });
}

}  // namespace
}  // namespace heddle::kernel_test
