// Word-level distillation: the loss against a teacher's probabilities.
#include <gtest/gtest.h>

#include <cmath>

#include "heddle/train/tasks/losses.h"
#include "tests/infer/small_models.h"

namespace heddle::train {
namespace {

TranslationBatch two_pairs() {
  TranslationBatch batch;
  batch.source = {5, 9, 8, 3, 7, 3}, batch.target_in = {2, 6, 11, 2, 10};
  batch.target_out = {6, 11, 3, 10, 3};
  batch.source_segments = Segments::from_lengths(std::vector<int64_t>{4, 2});
  batch.target_segments = Segments::from_lengths(std::vector<int64_t>{3, 2});
  batch.source_sample.resize(6), batch.source_position.resize(6);
  batch.target_sample.resize(5), batch.target_position.resize(5);
  return batch;
}

// The loss by its definition, in double.
TEST(WordTeaching, loss_is_of_labels_and_of_the_teachers_probabilities) {
  const testing::SmallModel teacher(testing::small_config(), 5),
      student(testing::small_config(), 6);
  const TranslationBatch batch = two_pairs();
  const nn::Run run;
  const auto log_p = [&](const testing::SmallModel& m) {
    const NoGrad off;
    const Tensor logits = m.model.output()(decoder_states(m.model, batch, run), run);
    std::vector<double> values;
    for (int64_t r = 0; r < logits.size(0); ++r) {
      const std::vector<float> row = logits.slice(0, r, 1).to_floats();
      double sum = 0;
      for (const float x : row) sum += std::exp(double{x});
      for (const float x : row) values.push_back(x - std::log(sum));
    }
    return values;
  };
  const std::vector<double> taught = log_p(teacher), own = log_p(student);
  const size_t vocab = own.size() / 5;
  std::vector<float> p;
  for (const double x : taught) p.push_back(static_cast<float>(std::exp(x)));
  constexpr double kWeight = 0.3, kSmoothing = 0.1;
  double loss = 0, nll = 0;
  for (size_t i = 0; i < own.size(); ++i) {
    const bool is_label = static_cast<size_t>(batch.target_out[i / vocab]) == i % vocab;
    const double label = (is_label ? 1 - kSmoothing : 0) + kSmoothing / static_cast<double>(vocab);
    loss -= (kWeight * p[i] + (1 - kWeight) * label) * own[i];
    nll -= is_label ? own[i] : 0;
  }
  const LossSums sums =
      accumulate_taught(student.model, batch, run, kSmoothing,
                        Tensor::from(p, {5, static_cast<int64_t>(vocab)}), kWeight);
  EXPECT_NEAR(sums.loss, loss, 1e-4 * loss);
  EXPECT_NEAR(sums.nll, nll, 1e-4 * nll);
  EXPECT_EQ(sums.predicted, 5);
}

// With nothing of the teacher it is the loss of every translator, gradients included.
TEST(WordTeaching, without_the_teacher_gradients_are_those_of_labels_alone) {
  TranslationBatch batch = two_pairs();
  for (const DType compute : {DType::f32, DType::bf16}) {
    // A row in front of a given token, as that of a language is, counts for nothing.
    batch.target_out[3] = compute == DType::f32 ? -1 : 10;
    nn::Run run;
    run.compute = compute;
    const testing::SmallModel labels(testing::small_config(), 6),
        taught(testing::small_config(), 6);
    const LossSums a = accumulate_gradients(labels.model, batch, run, 0.1);
    const Tensor uniform =
        Tensor::full({5, taught.model.facts().target_vocab_size}, 1.0F / 40, DType::f32);
    const LossSums b = accumulate_taught(taught.model, batch, run, 0.1, uniform, 0);
    const double tolerance = compute == DType::f32 ? 1e-5 : 2e-2;
    EXPECT_NEAR(b.loss, a.loss, tolerance * a.loss);
    EXPECT_NEAR(b.nll, a.nll, tolerance * a.nll);
    EXPECT_EQ(b.predicted, compute == DType::f32 ? 4 : 5);
    double squares = 0, apart = 0;
    for (size_t i = 0; i < labels.parameters.all().size(); ++i) {
      const auto x = labels.parameters.all()[i]->grad().to_floats(),
                 y = taught.parameters.all()[i]->grad().to_floats();
      ASSERT_EQ(x.size(), y.size());
      for (size_t k = 0; k < x.size(); ++k) {
        squares += double{x[k]} * x[k];
        apart += double{x[k] - y[k]} * (x[k] - y[k]);
      }
    }
    EXPECT_GT(squares, 0);
    EXPECT_LT(apart, tolerance * tolerance * squares) << dtype_name(compute);
  }
}

}  // namespace
}  // namespace heddle::train
