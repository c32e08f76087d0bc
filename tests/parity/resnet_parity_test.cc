// ResNet against transformers in float64: model directories loaded as they are, images of several
// sizes in one batch, gradients and running statistics of training.
#include <gtest/gtest.h>

#include "heddle/infer/loading/loaded_model.h"
#include "heddle/models/backbone.h"
#include "heddle/ops/loss.h"
#include "tests/base/temporary.h"
#include "tests/parity/comparison.h"
#include "tests/support/places.h"

namespace heddle {
namespace {

// Of the largest magnitude.
constexpr double kF32 = 1e-5, kGradients = 1e-4, kBf16 = 6e-2;

struct Images {
  std::vector<ImageSize> sizes;
  std::vector<float> x;
  Segments segments;
  int64_t channels = 0;

  void add(const SafetensorsFile& file, const std::string& name) {
    const std::vector<int64_t> s = file.info(name).shape;
    const std::vector<float> values = floats(file, name);
    const int64_t area = s[2] * s[3];
    channels = s[1];
    for (int64_t i = 0; i < s[0]; ++i) {
      sizes.push_back({s[2], s[3]});
      for (int64_t p = 0; p < area; ++p) {
        for (int64_t c = 0; c < s[1]; ++c) x.push_back(values[(i * s[1] + c) * area + p]);
      }
    }
    segments = nn::image_segments(sizes);
  }
  nn::ImageRows rows() const {
    return {
        .x = Tensor::from(x, {segments.rows(), channels}), .segments = &segments, .sizes = &sizes};
  }
};

using Values = std::map<std::string, std::vector<float>>;

class ResnetParity : public ::testing::TestWithParam<const char*> {
 protected:
  ResnetParity()
      : file(SafetensorsFile::open(
            fmt::format("{}/resnet/{}.safetensors", testing::kFixtures, GetParam()))) {}

  bool is_of_model(const std::string& name) const {
    const std::set<std::string> others =
        named(file, {"pixel_values", "out.", "label", "loss", "grad.", "after."});
    return !others.contains(name);
  }
  LoadedModel load() {
    std::vector<NamedTensorView> views;
    for (const std::string& name : file.names()) {
      const StoredTensor& info = file.info(name);
      if (is_of_model(name)) views.push_back({name, info.dtype, info.shape, info.bytes});
    }
    dir_.write("config.json", file.metadata().at("config"));
    write_safetensors(dir_ / "model.safetensors", views);
    return load_model(dir_.path());
  }
  int64_t batches() const {
    int64_t k = 0;
    while (file.find(fmt::format("pixel_values.{}", k)) != nullptr) ++k;
    return k;
  }
  Images images(int64_t k) const {
    Images batch;
    batch.add(file, fmt::format("pixel_values.{}", k));
    return batch;
  }

  Values outputs(const Model& model, const Images& batch, const nn::Run& given = {}) const {
    Values values;
    nn::Observer observer;
    observer.hidden = [&](const std::string& name, const Tensor& x) {
      values[name] = x.to_floats();
    };
    nn::Run run = given;
    run.observer = &observer;
    for (const ModelOutput& o : model.forward(batch.rows(), run)) values[o.name] = o.x.to_floats();
    return values;
  }

  std::string compare(const Model& model, const nn::Run& run, double tolerance) {
    Comparison comparison(file, tolerance);
    for (int64_t k = 0; k < batches(); ++k) {
      for (const auto& [name, values] : outputs(model, images(k), run)) {
        const std::string there = fmt::format("out.{}.{}", k, name);
        const std::string map = fmt::format("out.{}.feature_maps.{}", k, name.back());
        if (file.find(map) != nullptr && name.starts_with("hidden")) comparison.add(map, values);
        if (file.find(there) != nullptr) comparison.add(there, values);
      }
    }
    EXPECT_EQ(comparison.names(), named(file, {"out."}));
    RecordProperty("worst_relative_error", fmt::format("{:.2e}", comparison.worst()));
    return comparison.report();
  }

  SafetensorsFile file;
  TemporaryFolder dir_;
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

TEST_P(ResnetParity, maps_are_the_hidden_states_and_each_image_is_what_it_is_alone) {
  const LoadedModel model = load();
  const NoGrad off;
  const auto* backbone = model.model->as<Backbone>();
  ASSERT_NE(backbone, nullptr);
  Images all;
  Values apart;
  for (int64_t k = 0; k < batches(); ++k) {
    all.add(file, fmt::format("pixel_values.{}", k));
    for (const auto& [name, values] : outputs(*model.model, images(k))) {
      apart[name].insert(apart[name].end(), values.begin(), values.end());
    }
  }
  EXPECT_EQ(outputs(*model.model, all), apart);
  const std::vector<FeatureMap> maps = backbone->features(all.rows(), {});
  ASSERT_EQ(maps.size(), backbone->channels().size());
  for (size_t i = 0; i < maps.size(); ++i) {
    EXPECT_EQ(maps[i].x.to_floats(), apart.at(fmt::format("hidden_states.{}", i + 1)));
    EXPECT_EQ(maps[i].x.size(0), nn::image_segments(maps[i].sizes).rows());
    EXPECT_EQ(maps[i].x.size(1), backbone->channels()[i]);
  }
  for (size_t i = 0; i < all.sizes.size(); ++i) {
    EXPECT_EQ(backbone->grid(all.sizes[i]), maps.back().sizes[i]);
  }
}

TEST_P(ResnetParity, saved_model_has_the_tensors_of_the_checkpoint_and_gives_the_same_bits) {
  const LoadedModel model = load();
  const char* const kept = std::getenv("HEDDLE_KEEP");  // for tools/make_resnet_fixtures.py --check
  const std::string folder = kept ? fmt::format("{}/{}", kept, GetParam()) : dir_ / "again";
  save_model(folder, *model.model, model.parameters);
  const SafetensorsFile saved = SafetensorsFile::open(folder + "/model.safetensors");
  for (const std::string& name : file.names()) {
    if (!is_of_model(name)) continue;
    ASSERT_NE(saved.find(name), nullptr) << name;
    EXPECT_EQ(saved.info(name).dtype, file.info(name).dtype) << name;
    EXPECT_EQ(saved.info(name).shape, file.info(name).shape) << name;
    EXPECT_EQ(floats(saved, name), floats(file, name)) << name;
  }
  const NoGrad off;
  const LoadedModel again = load_model(folder);
  EXPECT_EQ(outputs(*again.model, images(0)), outputs(*model.model, images(0)));
}

TEST_P(ResnetParity, image_too_small_for_the_stages_is_named) {
  const LoadedModel model = load();
  if (model.model->as<ImageModel>()->facts().layers == 0) return;
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
    const Images batch = images(0);
    const nn::ImageRows rows = batch.rows();
    std::vector<int32_t> labels;
    for (const int64_t l : integers(file, "labels")) labels.push_back(static_cast<int32_t>(l));
    const Tensor logits =
        model.model->heads().sequence_classes(model.model->hidden(rows, run), rows, run);
    const Tensor loss =
        cross_entropy(logits, labels, {.grad_scale = 1 / static_cast<float>(labels.size())}).loss;
    const std::string mode = run.dropout.training ? "train" : "eval";
    Values values = {{"loss." + mode, loss.to_floats()}};
    backward(loss);
    for (auto& p : model.parameters.all()) {
      EXPECT_EQ(p->grad().defined(), !p->is_buffer()) << p->name();
      if (!p->grad().defined()) continue;
      values[fmt::format("grad.{}.{}", mode, p->name())] = part_of(p->grad(), p->parts()[0]);
      p->grad() = Tensor();
    }
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
  model.model->forward(images(0).rows(), {});
  EXPECT_EQ(buffers(model), before);
}

TEST_P(ResnetTraining, folded_weights_follow_the_statistics) {
  LoadedModel model = load();
  const auto logits = [&] {
    const NoGrad off;
    return outputs(*model.model, images(0)).at("logits");
  };
  const std::vector<float> before = logits();
  gradients(model, {.dropout = {.training = true}});
  const std::vector<float> after = logits();
  EXPECT_NE(after, before);
  const std::vector<float> unfolded = outputs(*model.model, images(0)).at("logits");
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
