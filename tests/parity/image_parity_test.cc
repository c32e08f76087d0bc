// Models of images against transformers, timm and (CCT, which neither has) PyTorch in float64:
// model directories loaded as they are, images of several sizes in one batch.
#include "tests/parity/image_parity.h"

#include "heddle/ops/elementwise.h"
#include "heddle/ops/loss.h"

namespace heddle {
namespace {

// Of the largest magnitude. Worst seen: 6.6e-7 of outputs, 1.9e-6 of gradients in f32; in bf16
// 1.9e-2 of outputs.
constexpr double kF32 = 1e-5, kGradients = 1e-4, kBf16 = 6e-2;

class OfFixture : public ::testing::TestWithParam<std::string>, protected ImageFixture {
 protected:
  OfFixture() : ImageFixture(GetParam()) {}
};

std::string test_name(const ::testing::TestParamInfo<std::string>& fixture) {
  std::string name = fixture.param;
  std::ranges::replace(name, '/', '_');
  return name;
}

std::vector<std::string> join(std::vector<std::string> names,
                              const std::vector<std::string>& more) {
  names.insert(names.end(), more.begin(), more.end());
  return names;
}

const std::vector<std::string> kVision = {
    "vision/vit",          "vision/vit_wide", "vision/vit_states", "vision/deit",
    "vision/deit_teacher", "vision/swin",     "vision/swin_deep",  "vision/swin_states"};
const std::vector<std::string> kTimm = {
    "timm/vit",           "timm/vit_wide",        "timm/vit_states",
    "timm/deit",          "timm/deit_plain",      "timm/mixer",
    "timm/mixer_wide",    "timm/resnet",          "timm/resnet_wide",
    "timm/swin",          "timm/swin_wide",       "timm/cct",
    "timm/cct_sine",      "timm/resnet_silu",     "timm/vit_mean",
    "timm/vit_gap",       "timm/vit_mean_states", "timm/vit_axes",
    "timm/vit_axes_token"};
// What these give has tests of its own.
const std::vector<std::string> kResnet = {"resnet/basic", "resnet/bottleneck", "resnet/early",
                                          "resnet/states", "resnet/backbone"};
const std::vector<std::string> kDetr = {"vision/detr", "vision/detr_auxiliary",
                                        "vision/detr_normed", "vision/detr_states",
                                        "vision/detr_swin"};

class ImageOutputs : public OfFixture {
 protected:
  std::string report_in(DType compute, double tolerance) {
    const LoadedModel model = load();
    return report(
        [&](const Images& images) { return outputs(*model.model, images, {.compute = compute}); },
        tolerance);
  }
};

TEST_P(ImageOutputs, match_the_reference_at_the_size_of_training_and_at_others) {
  EXPECT_EQ(report_in(DType::f32, kF32), "");
}

TEST_P(ImageOutputs, match_the_reference_in_bf16) { EXPECT_EQ(report_in(DType::bf16, kBf16), ""); }

INSTANTIATE_TEST_SUITE_P(Fixtures, ImageOutputs, ::testing::ValuesIn(join(kVision, kTimm)),
                         test_name);

class ImageBatches : public OfFixture {};

TEST_P(ImageBatches, image_has_the_bits_it_has_alone_in_a_batch_of_all_sizes) {
  const LoadedModel model = load();
  for (const DType compute : {DType::f32, DType::bf16}) {
    const nn::Run run{.compute = compute};
    EXPECT_EQ(alone(*model.model, run), outputs(*model.model, all, run)) << dtype_name(compute);
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, ImageBatches,
                         ::testing::ValuesIn(join(join(kVision, kTimm), join(kResnet, kDetr))),
                         test_name);

// In the family's own form, that of transformers where it has the family.
class SavedImageModel : public OfFixture {};

TEST_P(SavedImageModel, has_the_same_config_and_gives_the_same_bits) {
  const LoadedModel model = load();
  const bool is_timm = GetParam().starts_with("timm/");  // whose names are others
  const std::string folder = is_timm ? dir_ / "again" : saved_folder();
  save_model(folder, *model.model, model.parameters);
  const LoadedModel again = load_model(folder);
  EXPECT_EQ(again.model->config().json(), model.model->config().json());
  EXPECT_EQ(outputs(*again.model, all), outputs(*model.model, all));
  if (!is_timm) expect_weights_in(folder, ".swin.layernorm.");  // of a backbone: nothing reads it
}

INSTANTIATE_TEST_SUITE_P(Fixtures, SavedImageModel,
                         ::testing::ValuesIn(join(join(kVision, kTimm), join(kResnet, kDetr))),
                         test_name);

class TransformersNames : public OfFixture {};

TEST_P(TransformersNames, of_version_5_and_without_the_base_load_alike) {
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
    expect_same_parameters(other, expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, TransformersNames, ::testing::ValuesIn(kVision), test_name);

class ImageGradients : public OfFixture {
 protected:
  // Of the mean loss of the images; of two heads of both.
  Values gradients(const nn::Run& run) {
    LoadedModel loaded = load();
    const Model& model = *loaded.model;
    const nn::ImageRows images = all.rows();
    const Tensor h = model.hidden(images, run);
    const CrossEntropyOptions mean{.grad_scale = 1 / static_cast<float>(all.sizes.size())};
    const auto loss_of = [&](const Tensor& logits, const std::string& key) {
      return cross_entropy(logits, labels(key), mean).loss;
    };
    const Heads& heads = model.heads();
    const Tensor loss =
        heads.distilled_classes
            ? add(loss_of(heads.own_classes(h, images, run), "labels"),
                  loss_of(heads.distilled_classes(h, images, run), "distilled_labels"))
            : loss_of(heads.sequence_classes(h, images, run), "labels");
    backward(loss);
    Values values = take_gradients(loaded);
    values["loss"] = loss.to_floats();
    return values;
  }

 private:
  std::vector<int32_t> labels(const std::string& key) const {
    std::vector<int32_t> of_all;
    for (size_t k = 0; k < pixels.size(); ++k) {
      const std::vector<int32_t> more = labels_of(file, fmt::format("{}.{}", key, k));
      of_all.insert(of_all.end(), more.begin(), more.end());
    }
    return of_all;
  }
};

TEST_P(ImageGradients, loss_and_every_gradient_match_the_reference) {
  Comparison comparison(file, kGradients);
  for (const auto& [name, values] : gradients({})) {
    // That of the key's bias is rounding: a softmax does not see what is added to all its scores;
    // nor do the norms behind a Mixer's tokens see what is added to all channels of one.
    const bool is_rounding = name.ends_with("key.bias") || name.ends_with("mlp_tokens.fc2.bias");
    comparison.add(name, values, is_rounding ? 1 : 0);
  }
  EXPECT_EQ(comparison.report(), "");
  EXPECT_EQ(comparison.names(), named(file, {"grad.", "loss"}));
  RecordProperty("worst_relative_error", fmt::format("{:.2e}", comparison.worst()));
}

TEST_P(ImageGradients, are_the_same_bits_when_layers_are_recomputed) {
  EXPECT_EQ(gradients({.recompute = true}), gradients({}));
}

INSTANTIATE_TEST_SUITE_P(Fixtures, ImageGradients,
                         ::testing::Values("vision/vit", "vision/vit_wide", "vision/deit",
                                           "vision/deit_teacher", "vision/swin", "vision/swin_deep",
                                           "timm/mixer", "timm/mixer_wide", "timm/cct",
                                           "timm/cct_sine", "timm/vit_mean", "timm/vit_gap",
                                           "timm/vit_axes", "timm/vit_axes_token"),
                         test_name);

}  // namespace
}  // namespace heddle
