// Cross entropy with label smoothing against float64 and finite differences.
#include <limits>

#include "heddle/base/error.h"
#include "tests/kernels/kernel_case.h"

namespace heddle::kernel_test {
namespace {

struct LossCase {
  Matrix logits, dlogits, loss, nll;
  std::vector<int32_t> targets;
  CrossEntropyArgs args;
  LossCase(int64_t rows, int64_t vocab, DType dtype, DType gradient, float smoothing,
           double spread = 2)
      : logits(rows, vocab, dtype, 3),
        dlogits(rows, vocab, gradient, 1),
        loss(1, rows),
        nll(1, rows) {
    logits.fill_normal(1, spread);
    for (int64_t r = 0; r < rows; ++r) targets.push_back(static_cast<int32_t>(r * 7 % vocab));
    args = {.logits = logits,
            .dlogits = dlogits,
            .targets = targets.data(),
            .smoothing = smoothing,
            .grad_scale = 0.5f,
            .loss = loss.view().row<float>(0),
            .nll = nll.view().row<float>(0)};
  }
  // -(1 - s) log p[target] - s / V sum_j log p[j], with one logit moved.
  double reference(int64_t r, double smoothing, int64_t moved = -1, double by = 0) const {
    const int64_t vocab = logits.width();
    const auto logit = [&](int64_t c) { return logits.get(r, c) + (c == moved ? by : 0); };
    double max = logit(0), sum = 0, logs = 0;
    for (int64_t c = 0; c < vocab; ++c) max = std::max(max, logit(c));
    for (int64_t c = 0; c < vocab; ++c) sum += std::exp(logit(c) - max);
    const double lse = max + std::log(sum);
    for (int64_t c = 0; c < vocab; ++c) logs += logit(c) - lse;
    return -(1 - smoothing) * (logit(targets[r]) - lse) -
           smoothing / static_cast<double>(vocab) * logs;
  }
};

TEST(CrossEntropy, loss_matches_float64) {
  for_each_case([](int64_t vocab, DType dtype) {
    for (float smoothing : {0.0f, 0.1f}) {
      LossCase l(3, vocab, dtype, DType::f32, smoothing);
      kernels().cross_entropy(l.args);
      expect_near(
          l.loss, [&](int64_t, int64_t r) { return l.reference(r, smoothing); }, 1e-6, 4);
      expect_near(
          l.nll, [&](int64_t, int64_t r) { return l.reference(r, 0); }, 1e-6, 4);
    }
  });
}

TEST(CrossEntropy, gradient_matches_finite_differences) {
  for_each_case([](int64_t vocab, DType gradient) {
    LossCase l(2, vocab, DType::f32, gradient, 0.1f);
    kernels().cross_entropy(l.args);
    expect_near(
        l.dlogits,
        [&](int64_t r, int64_t c) {
          return 0.5 * (l.reference(r, 0.1f, c, 1e-5) - l.reference(r, 0.1f, c, -1e-5)) / 2e-5;
        },
        gradient == DType::f32 ? 1e-6 : 1e-6 + epsilon(gradient),
        gradient == DType::f32 ? 1 : 1e-3);
  });
}

TEST(CrossEntropy, divergence_of_two_passes_matches_float64) {
  for_each_case([](int64_t vocab, DType dtype) {
    LossCase l(4, vocab, dtype, DType::f32, 0.1f);
    for (int64_t r = 0; r < 2; ++r) l.targets[r + 2] = l.targets[r];
    l.args.divergence = 3;
    kernels().cross_entropy(l.args);
    const auto log_p = [&](int64_t r, int64_t c) {
      double sum = 0;
      for (int64_t j = 0; j < vocab; ++j) sum += std::exp(l.logits.get(r, j));
      return l.logits.get(r, c) - std::log(sum);
    };
    expect_near(
        l.loss,
        [&](int64_t, int64_t r) {
          double both = 0;  // KL(p || q) + KL(q || p) = sum (p - q) log(p / q)
          for (int64_t c = 0; c < vocab; ++c) {
            const double p = log_p(r % 2, c), q = log_p(r % 2 + 2, c);
            both += (std::exp(p) - std::exp(q)) * (p - q);
          }
          return l.reference(r, 0.1f) + 3 * both / 4;
        },
        3e-6, 4);
  });
}

TEST(CrossEntropy, large_vocabulary_and_large_logits_are_exact) {
  for_each_target([] {
    LossCase l(2, 50'257, DType::f32, DType::bf16, 0.1f, 30);
    kernels().cross_entropy(l.args);
    expect_near(
        l.loss, [&](int64_t, int64_t r) { return l.reference(r, 0.1f); }, 1e-6);
  });
}

TEST(CrossEntropy, uniform_logits_give_log_of_vocabulary) {
  for_each_target([] {
    LossCase l(1, 1000, DType::f32, DType::f32, 0.1f, 0);
    kernels().cross_entropy(l.args);
    EXPECT_NEAR(l.loss.get(0, 0), std::log(1000), 1e-6);
    EXPECT_NEAR(l.nll.get(0, 0), std::log(1000), 1e-6);
  });
}

TEST(CrossEntropy, negative_target_gives_zero_loss_and_gradient) {
  for_each_target([] {
    LossCase l(3, 37, DType::f32, DType::bf16, 0.1f);
    l.targets[1] = -100;
    kernels().cross_entropy(l.args);
    EXPECT_EQ(l.loss.get(0, 1), 0);
    EXPECT_EQ(l.nll.get(0, 1), 0);
    for (int64_t c = 0; c < 37; ++c) EXPECT_EQ(l.dlogits.get(1, c), 0);
    EXPECT_NE(l.loss.get(0, 2), 0);
  });
}

TEST(CrossEntropy, target_beyond_the_classes_is_a_data_error) {
  LossCase l(2, 37, DType::f32, DType::f32, 0);
  l.targets[1] = 37;
  try {
    kernels().cross_entropy(l.args);
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::data);
    EXPECT_NE(std::string(e.what()).find("37"), std::string::npos) << e.what();
  }
}

TEST(CrossEntropy, class_of_minus_infinity_has_no_probability) {
  for_each_target([] {
    LossCase l(1, 21, DType::f32, DType::f32, 0);
    l.logits.set(0, 20, -std::numeric_limits<double>::infinity());
    kernels().cross_entropy(l.args);
    EXPECT_TRUE(std::isfinite(l.loss.get(0, 0)));
    EXPECT_EQ(l.dlogits.get(0, 20), 0);
  });
}

TEST(CrossEntropy, gradient_may_overwrite_logits_or_be_absent) {
  for_each_target([] {
    LossCase apart(3, 133, DType::f32, DType::f32, 0.1f),
        over(3, 133, DType::f32, DType::f32, 0.1f), none(3, 133, DType::f32, DType::f32, 0.1f);
    over.args.dlogits = over.logits;
    none.args.dlogits = {};
    for (LossCase* l : {&apart, &over, &none}) kernels().cross_entropy(l->args);
    EXPECT_TRUE(apart.loss == over.loss);
    EXPECT_TRUE(apart.loss == none.loss);
    for (int64_t r = 0; r < 3; ++r) {
      for (int64_t c = 0; c < 133; ++c) EXPECT_EQ(apart.dlogits.get(r, c), over.logits.get(r, c));
    }
  });
}

TEST(CrossEntropy, threads_do_not_change_bits) {
  expect_same_bits_for_any_threads([] {
    LossCase l(70, 1003, DType::bf16, DType::bf16, 0.1f);
    kernels().cross_entropy(l.args);
    return std::vector<Matrix>{l.loss, l.nll, l.dlogits};
  });
}

}  // namespace
}  // namespace heddle::kernel_test
