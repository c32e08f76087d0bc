// The loss of labels and a teacher against its formula in double, and the gradients of the heads'
// biases, which are sums of the gradients of logits.
#include "heddle/train/tasks/images/image_loss.h"

#include <gtest/gtest.h>

#include <cmath>

#include "heddle/infer/image_batch.h"
#include "heddle/io/safetensors.h"
#include "heddle/train/config.h"
#include "tests/base/temporary.h"

namespace heddle::train {
namespace {

constexpr int64_t kImages = 3, kClasses = 4;

using Rows = std::vector<std::vector<double>>;  // [images][classes]

Rows rows_of(const Tensor& x) {
  const std::vector<float> values = x.to_floats();
  Rows rows(kImages);
  for (size_t i = 0; i < values.size(); ++i) rows[i / kClasses].push_back(values[i]);
  return rows;
}

Rows log_softmax(Rows rows, double temperature = 1) {
  for (auto& row : rows) {
    double sum = 0;
    for (const double y : row) sum += std::exp(y / temperature);
    for (double& y : row) y = y / temperature - std::log(sum);
  }
  return rows;
}

struct Pupil {
  nn::Parameters parameters{5};
  std::unique_ptr<Model> model;
  ImageBatch batch{std::vector<ImageSize>(kImages, ImageSize{8, 8})};

  explicit Pupil(bool has_two) {
    StackConfig stack("deit");
    for (const char* key : {"hidden_size", "intermediate_size", "image_size"}) stack.set(key, 8);
    for (const char* key : {"num_hidden_layers", "num_attention_heads"}) stack.set(key, 1);
    stack.set("patch_size", 4);
    stack.hub().head = has_two ? Head::distilled_classes : Head::image_classes;
    stack.hub().labels = {"a", "b", "c", "d"};
    model = stack.make(nn::Scope(parameters));
    size_t n = 0;
    for (float& x : batch.pixels()) x = std::sin(0.37F * static_cast<float>(n++));
    for (auto& p : parameters.all()) {  // heads that tell classes apart
      if (p->name().find("classifier") == std::string::npos) continue;
      for (int64_t i = 0; i < p->elements(); ++i) {
        p->value().data<float>()[i] = std::sin(static_cast<float>(i * i + 1));
      }
    }
  }
  Rows logits(const Heads::OfInput& head) const {
    const NoGrad off;
    const nn::ImageRows rows = batch_rows();
    const ModelInput input = rows;
    return rows_of(head(model->hidden(input, {}), input, {}));
  }
  nn::ImageRows batch_rows() const { return batch.rows(); }
  std::vector<float> gradient(const std::string& name) const {
    for (const auto& p : parameters.all()) {
      if (p->name() == name) return p->grad().to_floats();
    }
    ADD_FAILURE() << name;
    return {};
  }
};

ImageTargets targets_of(bool is_divergence) {
  const std::vector<float> mixed = {1, 0, 0, 0, 0.25F, 0, 0.75F, 0, 0, 0, 0, 1};
  const std::vector<float> said = {2, -1, 0, 1, 0, 3, -2, 1, 1, 1, 5, 0};
  return {.labels = Tensor::from(mixed, {kImages, kClasses}),
          .smoothing = 0.2F,
          .taught = is_divergence ? softened(said, kClasses, 3) : hardened(said, kClasses),
          .teacher_weight = 0.3,
          .temperature = is_divergence ? 3.0 : 1.0,
          .is_divergence = is_divergence};
}

// -sum t log p
double cross(const Rows& shares, const Rows& log_p) {
  double sum = 0;
  for (size_t i = 0; i < shares.size(); ++i) {
    for (size_t c = 0; c < shares[i].size(); ++c) sum -= shares[i][c] * log_p[i][c];
  }
  return sum;
}

void expect_formula(bool has_two, bool is_divergence) {
  Pupil pupil(has_two);
  const ImageTargets targets = targets_of(is_divergence);
  const Heads& heads = pupil.model->heads();
  const Rows own = pupil.logits(has_two ? heads.own_classes : heads.sequence_classes);
  const Rows distilled = pupil.logits(has_two ? heads.distilled_classes : heads.sequence_classes);
  const double t = targets.temperature, a = targets.teacher_weight;
  const Rows labels = rows_of(targets.labels), taught = rows_of(targets.taught);
  Rows smooth = labels;
  for (auto& row : smooth) {
    for (double& x : row) x = 0.8 * x + 0.05;
  }
  const Rows own_p = log_softmax(own), taught_p = log_softmax(distilled, t);
  double entropy = 0;
  for (const auto& row : taught) {
    for (const double x : row) entropy += is_divergence ? x * std::log(x) : 0;
  }
  const double factor = is_divergence ? t * t : 1;
  const double loss =
      (1 - a) * cross(smooth, own_p) + a * factor * (cross(taught, taught_p) + entropy);
  const LossSums sums = accumulate_images(*pupil.model, pupil.batch_rows(), targets, {});
  EXPECT_NEAR(sums.loss, loss, 1e-5 * loss);
  EXPECT_NEAR(sums.nll, cross(labels, log_softmax(pupil.logits(heads.sequence_classes))), 1e-5);
  EXPECT_EQ(sums.predicted, kImages);
  std::vector<double> of_own(kClasses), of_distilled(kClasses);
  for (int64_t i = 0; i < kImages; ++i) {
    for (int64_t c = 0; c < kClasses; ++c) {
      of_own[c] += (1 - a) * (std::exp(own_p[i][c]) - smooth[i][c]);
      of_distilled[c] += a * factor / t * (std::exp(taught_p[i][c]) - taught[i][c]);
    }
  }
  for (int64_t c = 0; c < kClasses; ++c) {
    if (has_two) {
      EXPECT_NEAR(pupil.gradient("cls_classifier.bias")[c], of_own[c], 1e-5);
      EXPECT_NEAR(pupil.gradient("distillation_classifier.bias")[c], of_distilled[c], 1e-5);
    } else {
      EXPECT_NEAR(pupil.gradient("classifier.bias")[c], of_own[c] + of_distilled[c], 1e-5);
    }
  }
}

TEST(ImageLoss, of_two_heads_and_a_hard_teacher) { expect_formula(true, false); }
TEST(ImageLoss, of_two_heads_and_a_soft_teacher) { expect_formula(true, true); }
TEST(ImageLoss, of_one_head_and_a_hard_teacher) { expect_formula(false, false); }
TEST(ImageLoss, of_one_head_and_a_soft_teacher) { expect_formula(false, true); }

TEST(ImageLoss, teacher_that_agrees_has_no_divergence) {
  Pupil pupil(true);
  ImageTargets targets = targets_of(true);
  std::vector<float> same;
  for (const auto& row : pupil.logits(pupil.model->heads().distilled_classes)) {
    same.insert(same.end(), row.begin(), row.end());
  }
  targets.taught = softened(same, kClasses, 3);
  targets.teacher_weight = 1;
  EXPECT_NEAR(accumulate_images(*pupil.model, pupil.batch_rows(), targets, {}).loss, 0, 1e-5);
}

TEST(ImageLoss, without_a_teacher_both_heads_learn_the_labels) {
  Pupil pupil(true);
  ImageTargets targets = targets_of(false);
  targets.taught = Tensor();
  accumulate_images(*pupil.model, pupil.batch_rows(), targets, {});
  for (const char* name : {"cls_classifier.bias", "distillation_classifier.bias"}) {
    double sum = 0, size = 0;
    for (const float g : pupil.gradient(name)) sum += g, size += std::abs(g);
    EXPECT_GT(size, 0.1) << name;
    EXPECT_NEAR(sum, 0, 1e-5) << name;
  }
}

// The rows of a grid without the token before it, standardised; and between two rows of another
// grid their cubic mean, which for two rows is symmetric.
TEST(Imitation, features_are_standardised_rows_of_the_grid) {
  const std::vector<float> states = {9, 9, 9, 9, 1, 2, 3, 4, 4, 3, 2, 1};
  const Tensor x = Tensor::from(states, {3, 4});
  const std::vector<float> same = grid_features(x, 1, {2, 1}, {2, 1}).to_floats();
  const double deviation = std::sqrt(1.25);
  for (int i = 0; i < 4; ++i) {
    EXPECT_NEAR(same[i], (i - 1.5) / deviation, 1e-5);
    EXPECT_NEAR(same[4 + i], (1.5 - i) / deviation, 1e-5);
  }
  const std::vector<float> middle = grid_features(x, 1, {2, 1}, {1, 1}).to_floats();
  for (const float m : middle) EXPECT_NEAR(m, 0, 1e-5);  // of opposite rows
}

void expect_imitated(const std::vector<int64_t>& layers) {
  Pupil pupil(true);
  const auto& model = pupil.model->need<ImageModel>("test");
  const Imitation imitation(pupil.parameters, model, {8, 8}, 3, layers, 0.7);
  ASSERT_EQ(imitation.grid(), (ImageSize{2, 2}));
  ImageTargets targets = targets_of(false);
  const double plain = accumulate_images(*pupil.model, pupil.batch_rows(), targets, {}).loss;
  for (auto& p : pupil.parameters.all()) p->grad() = Tensor();
  targets.imitation = &imitation;
  targets.features = Tensor::full({kImages * 4, 3}, 0.5F);
  const auto loss = [&] {
    for (auto& p : pupil.parameters.all()) p->changed(true);
    const double sum = accumulate_images(*pupil.model, pupil.batch_rows(), targets, {}).loss;
    return sum;
  };
  // Weights begin at random, biases at 0.
  EXPECT_GT(loss(), plain);
  int found = 0;
  for (const char* name :
       {"imitation.1.weight", "imitation.1.bias", "deit.encoder.layer.0.output.dense.weight"}) {
    for (auto& p : pupil.parameters.all()) {
      if (p->name() != name) continue;
      ++found;
      for (auto& other : pupil.parameters.all()) other->grad() = Tensor();
      loss();
      const float gradient = p->grad().to_floats()[1];
      float& x = p->value().data<float>()[1];
      const float before = x, step = 0.05F;
      x = before + step;
      const double up = loss();
      x = before - step;
      const double down = loss();
      x = before;
      EXPECT_NEAR(gradient, (up - down) / (2 * step), 2e-2 * (1e-2 + std::abs(gradient))) << name;
    }
  }
  EXPECT_EQ(found, 3);
  // What is saved of the model lacks it.
  const TemporaryFolder folder;
  pupil.parameters.save(folder / "model.safetensors");
  const std::vector<std::string> saved =
      SafetensorsFile::open(folder / "model.safetensors").names();
  EXPECT_GT(saved.size(), 10U);
  for (const std::string& name : saved) EXPECT_EQ(name.find("imitation"), name.npos) << name;
  pupil.parameters.for_each_tensor([](const std::string& name, const Shape&, const float*) {
    EXPECT_EQ(name.find("imitation"), name.npos) << name;
  });
}

TEST(Imitation, of_the_last_states_has_the_gradients_of_its_loss) { expect_imitated({}); }
TEST(Imitation, of_a_hidden_state_has_the_gradients_of_its_loss) { expect_imitated({1}); }

// In bf16 a weight has the gradient of f32 but for the rounding of states.
TEST(Imitation, of_a_hidden_state_is_learnt_in_bf16) {
  std::vector<std::vector<float>> gradients;
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Pupil pupil(true);
    const auto& model = pupil.model->need<ImageModel>("test");
    const Imitation imitation(pupil.parameters, model, {8, 8}, 3, {1}, 0.7);
    ImageTargets targets = targets_of(false);
    targets.imitation = &imitation;
    targets.features = Tensor::full({kImages * 4, 3}, 0.5F);
    nn::Run run;
    run.compute = dtype;
    accumulate_images(*pupil.model, pupil.batch_rows(), targets, run);
    for (auto& p : pupil.parameters.all()) {
      if (p->name() == "deit.encoder.layer.0.output.dense.weight") {
        gradients.push_back(p->grad().to_floats());
      }
    }
  }
  ASSERT_EQ(gradients.size(), 2U);
  double squares = 0, errors = 0;
  for (size_t i = 0; i < gradients[0].size(); ++i) {
    squares += gradients[0][i] * gradients[0][i];
    errors += std::pow(gradients[1][i] - gradients[0][i], 2);
  }
  EXPECT_LT(errors, 0.02 * 0.02 * squares);
}

TEST(Imitation, of_a_state_that_is_not_there_is_refused) {
  Pupil pupil(true);
  const auto& model = pupil.model->need<ImageModel>("test");
  expect_error(ErrorKind::usage, {"no hidden state 2", "the last one is 1"}, [&] {
    Imitation(pupil.parameters, model, {8, 8}, 3, {2}, 1);
  });
}

}  // namespace
}  // namespace heddle::train
