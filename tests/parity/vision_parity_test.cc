// ViT, DeiT and Swin against transformers in float64: model directories loaded as they are, images
// of several sizes in one batch.
#include "tests/parity/image_parity.h"

namespace heddle {
namespace {

// Of the largest magnitude. Worst seen: 6.6e-7 of outputs, 1.9e-6 of gradients in f32; in bf16
// 1.9e-2 of outputs.
constexpr double kF32 = 1e-5, kGradients = 1e-4, kBf16 = 6e-2;

class VisionParity : public ::testing::TestWithParam<const char*>, protected ImageFixture {
 protected:
  VisionParity() : ImageFixture(fmt::format("vision/{}", GetParam())) {}
};

TEST_P(VisionParity, every_output_matches_transformers_at_the_size_of_training_and_at_others) {
  const LoadedModel model = load();
  EXPECT_EQ(report_of(file, pixels, *model.model->as<ImageModel>(), DType::f32, kF32), "");
}

TEST_P(VisionParity, every_output_in_bf16_matches_transformers) {
  const LoadedModel model = load();
  EXPECT_EQ(report_of(file, pixels, *model.model->as<ImageModel>(), DType::bf16, kBf16), "");
}

TEST_P(VisionParity, image_has_the_bits_it_has_alone_in_a_batch_of_all_sizes) {
  const LoadedModel loaded = load();
  const auto& model = *loaded.model->as<ImageModel>();
  for (const DType compute : {DType::f32, DType::bf16}) {
    const Outputs together(model, all, {.compute = compute});
    std::map<std::string, std::vector<float>> alone;
    for (const Pixels& p : pixels) {
      for (int64_t i = 0; i < p.count; ++i) {
        Images one;
        one.add(p, i);
        for (const auto& [name, values] : Outputs(model, one, {.compute = compute}).values) {
          alone[name].insert(alone[name].end(), values.begin(), values.end());
        }
      }
    }
    EXPECT_EQ(alone, together.values) << dtype_name(compute);
  }
}

TEST_P(VisionParity, names_of_transformers_5_and_without_the_base_load_alike) {
  const LoadedModel expected = load();
  const std::vector<std::pair<std::string, std::string>> now = {
      {"attention.attention.query", "attention.q_proj"},
      {"attention.attention.key", "attention.k_proj"},
      {"attention.attention.value", "attention.v_proj"},
      {"attention.self.query", "attention.q_proj"},
      {"attention.self.key", "attention.k_proj"},
      {"attention.self.value", "attention.v_proj"},
      {"attention.self.relative", "attention.relative_position_bias.relative"},
      {"attention.output.dense", "attention.o_proj"},
      {"intermediate.dense", "mlp.fc1"},
      {"output.dense", "mlp.fc2"},
      {"encoder.layer.", "layers."}};
  const std::string base = expected.model->names().base + ".";
  for (const bool has_other_base : {false, true}) {
    const LoadedModel other = load([&](std::string name) {
      for (const auto& [before, after] : now) {
        const size_t at = name.find(before);
        if (at != name.npos) name.replace(at, before.size(), after);
      }
      if (!has_other_base) return name;
      return name.starts_with(base) ? name.substr(base.size()) : base + name;
    });
    for (size_t i = 0; i < expected.parameters.all().size(); ++i) {
      EXPECT_EQ(other.parameters.all()[i]->value().to_floats(),
                expected.parameters.all()[i]->value().to_floats());
    }
  }
}

TEST_P(VisionParity, saved_model_has_the_tensors_of_the_checkpoint_and_gives_the_same_bits) {
  const LoadedModel model = load();
  const char* const kept = std::getenv("HEDDLE_KEEP");  // for tools/make_vision_fixtures.py --check
  const std::string folder = kept ? fmt::format("{}/{}", kept, GetParam()) : dir_ / "again";
  save_model(folder, *model.model, model.parameters);
  const SafetensorsFile saved = SafetensorsFile::open(folder + "/model.safetensors");
  const std::set<std::string> others =
      named(file, {"pixel_values", "out.", "label", "loss", "grad."});
  EXPECT_EQ(saved.names().size() + others.size(), file.names().size());
  for (const std::string& name : saved.names()) {
    EXPECT_EQ(saved.info(name).shape, file.info(name).shape) << name;
    EXPECT_EQ(floats(saved, name), floats(file, name)) << name;
  }
  const LoadedModel again = load_model(folder);
  EXPECT_EQ(again.model->config().json(), model.model->config().json());
  EXPECT_EQ(Outputs(*again.model->as<ImageModel>(), all).values,
            Outputs(*model.model->as<ImageModel>(), all).values);
}

INSTANTIATE_TEST_SUITE_P(Fixtures, VisionParity,
                         ::testing::Values("vit", "vit_wide", "vit_states", "deit", "deit_teacher",
                                           "swin", "swin_deep", "swin_states"),
                         [](const auto& fixture) { return std::string(fixture.param); });

class VisionGradients : public VisionParity {};

TEST_P(VisionGradients, loss_and_every_gradient_match_transformers) {
  LoadedModel model = load();
  Comparison comparison(file, kGradients);
  for (const auto& [name, values] : gradients(model, {})) {
    // That of the key's bias is rounding: a softmax does not see what is added to all its scores.
    comparison.add(name, values, name.ends_with("key.bias") ? 1 : 0);
  }
  EXPECT_EQ(comparison.report(), "");
  EXPECT_EQ(comparison.names(), named(file, {"grad.", "loss"}));
  RecordProperty("worst_relative_error", fmt::format("{:.2e}", comparison.worst()));
}

TEST_P(VisionGradients, recomputed_layers_give_the_same_bits) {
  LoadedModel model = load();
  EXPECT_EQ(gradients(model, {.recompute = true}), gradients(model, {}));
}

INSTANTIATE_TEST_SUITE_P(Fixtures, VisionGradients,
                         ::testing::Values("vit", "vit_wide", "deit", "deit_teacher", "swin",
                                           "swin_deep"),
                         [](const auto& fixture) { return std::string(fixture.param); });

}  // namespace
}  // namespace heddle
