// ResNet against transformers in float64: model directories loaded as they are, images of several
// sizes in one batch, gradients and running statistics of training.
#include "heddle/models/backbone.h"
#include "heddle/ops/loss.h"
#include "tests/parity/image_parity.h"

namespace heddle {
namespace {

// Of the largest magnitude.
constexpr double kF32 = 1e-5, kGradients = 1e-4, kBf16 = 6e-2;

class ResnetParity : public ::testing::TestWithParam<const char*>, protected ImageFixture {
 protected:
  ResnetParity() : ImageFixture(fmt::format("resnet/{}", GetParam())) {}

  std::string compare(const Model& model, const nn::Run& run, double tolerance) const {
    const bool is_backbone = !named(file, {"out.0.feature_maps."}).empty();
    return report(
        [&](const Images& images) {
          const Values seen = observed(model, images, run);
          if (!is_backbone) return seen;
          Values maps;  // its hidden states, and all that transformers gives
          for (const auto& [name, x] : seen) {
            if (name.starts_with("hidden_states.")) maps["feature_maps." + name.substr(14)] = x;
          }
          return maps;
        },
        tolerance);
  }
};

TEST_P(ResnetParity, every_output_matches_transformers_folded_and_not) {
  const LoadedModel model = load();
  {
    const NoGrad off;  // norms are folded
    EXPECT_EQ(compare(*model.model, {}, kF32), "");
    EXPECT_EQ(compare(*model.model, {.compute = DType::bf16}, kBf16), "");
  }
  EXPECT_EQ(compare(*model.model, {}, kF32), "");
  clear_tape();
}

TEST_P(ResnetParity, maps_are_the_hidden_states_behind_the_stem) {
  const LoadedModel model = load();
  const NoGrad off;
  const auto* backbone = model.model->as<Backbone>();
  ASSERT_NE(backbone, nullptr);
  const Values states = observed(*model.model, all);
  const std::vector<FeatureMap> maps = backbone->features(all.rows(), {});
  ASSERT_EQ(maps.size(), backbone->channels().size());
  for (size_t i = 0; i < maps.size(); ++i) {
    EXPECT_EQ(maps[i].x.to_floats(), states.at(fmt::format("hidden_states.{}", i + 1)));
    EXPECT_EQ(maps[i].x.size(0), nn::image_segments(maps[i].sizes).rows());
    EXPECT_EQ(maps[i].x.size(1), backbone->channels()[i]);
  }
  for (size_t i = 0; i < all.sizes.size(); ++i) {
    EXPECT_EQ(backbone->grid(all.sizes[i]), maps.back().sizes[i]);
  }
}

TEST_P(ResnetParity, image_too_small_for_the_stages_is_a_data_error_that_names_its_size) {
  const LoadedModel model = load();
  expect_error(ErrorKind::data, {"0 x 5", "too small"}, [&] {
    model.model->as<ImageModel>()->grid({0, 5});
  });
}

INSTANTIATE_TEST_SUITE_P(Fixtures, ResnetParity,
                         ::testing::Values("basic", "bottleneck", "early", "states", "backbone"),
                         [](const auto& fixture) { return std::string(fixture.param); });

class ResnetTraining : public ResnetParity {
 protected:
  Values gradients(LoadedModel& model, const nn::Run& run) const {
    const Images images = batch(0);
    const nn::ImageRows rows = images.rows();
    const std::vector<int32_t> labels = labels_of(file, "labels");
    const Tensor logits =
        model.model->heads().sequence_classes(model.model->hidden(rows, run), rows, run);
    const Tensor loss =
        cross_entropy(logits, labels, {.grad_scale = 1 / static_cast<float>(labels.size())}).loss;
    const std::string mode = run.dropout.training ? "train" : "eval";
    backward(loss);
    Values values = take_gradients(model, fmt::format("grad.{}.", mode));
    values["loss." + mode] = loss.to_floats();
    return values;
  }
  static Values buffers(const LoadedModel& model) {
    Values values;
    for (const auto& p : model.parameters.all()) {
      if (p->is_buffer()) values["after." + p->name()] = p->value().to_floats();
    }
    return values;
  }
};

TEST_P(ResnetTraining, gradients_and_running_statistics_match_transformers) {
  for (const bool trains : {false, true}) {
    LoadedModel model = load();
    Comparison comparison(file, kGradients);
    for (const auto& [name, values] : gradients(model, {.dropout = {.training = trains}})) {
      comparison.add(name, values);
    }
    if (trains) {
      for (const auto& [name, values] : buffers(model)) comparison.add(name, values);
    }
    EXPECT_EQ(comparison.report(), "");
    EXPECT_EQ(comparison.names(), trains ? named(file, {"grad.train", "loss.train", "after."})
                                         : named(file, {"grad.eval", "loss.eval"}));
    RecordProperty("worst_relative_error", fmt::format("{:.2e}", comparison.worst()));
  }
}

TEST_P(ResnetTraining, recomputed_layers_give_the_same_bits_and_move_the_statistics_once) {
  for (const bool trains : {false, true}) {
    LoadedModel plain = load(), again = load();
    const nn::Run run{.dropout = {.training = trains}};
    nn::Run recomputing = run;
    recomputing.recompute = true;
    EXPECT_EQ(gradients(again, recomputing), gradients(plain, run));
    EXPECT_EQ(buffers(again), buffers(plain));
  }
}

TEST_P(ResnetTraining, a_pass_that_trains_nothing_moves_no_statistics) {
  LoadedModel model = load();
  const Values before = buffers(model);
  gradients(model, {});
  const NoGrad off;
  model.model->forward(batch(0).rows(), {});
  EXPECT_EQ(buffers(model), before);
}

TEST_P(ResnetTraining, folded_weights_follow_the_statistics) {
  LoadedModel model = load();
  const auto logits = [&] {
    const NoGrad off;
    return observed(*model.model, batch(0)).at("logits");
  };
  const std::vector<float> before = logits();
  gradients(model, {.dropout = {.training = true}});
  const std::vector<float> after = logits();
  EXPECT_NE(after, before);
  const std::vector<float> unfolded = observed(*model.model, batch(0)).at("logits");
  clear_tape();
  for (size_t i = 0; i < after.size(); ++i) {
    EXPECT_NEAR(after[i], unfolded[i], 1e-4 * Comparison::largest(unfolded));
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, ResnetTraining,
                         ::testing::Values("basic", "bottleneck", "early"),
                         [](const auto& fixture) { return std::string(fixture.param); });

}  // namespace
}  // namespace heddle
