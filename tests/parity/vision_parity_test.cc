// ViT, DeiT and Swin against transformers in float64: model directories loaded as they are, images
// of several sizes in one batch.
#include <gtest/gtest.h>

#include <functional>

#include "heddle/infer/loading/loaded_model.h"
#include "heddle/models/image_model.h"
#include "heddle/ops/elementwise.h"
#include "heddle/ops/loss.h"
#include "tests/base/temporary.h"
#include "tests/parity/comparison.h"
#include "tests/support/places.h"

namespace heddle {
namespace {

// Of the largest magnitude. Worst seen: 6.6e-7 of outputs, 1.9e-6 of gradients in f32; in bf16
// 1.9e-2 of outputs.
constexpr double kF32 = 1e-5, kGradients = 1e-4, kBf16 = 6e-2;

// Images of one size, channels first.
struct Pixels {
  int64_t count, channels;
  ImageSize size;
  std::vector<float> values;

  // Of one image, channels last.
  void add_rows(int64_t image, std::vector<float>& rows) const {
    const int64_t area = size.height * size.width;
    const float* const first = values.data() + image * channels * area;
    for (int64_t p = 0; p < area; ++p) {
      for (int64_t c = 0; c < channels; ++c) rows.push_back(first[c * area + p]);
    }
  }
};

// A batch of images and what it is made of.
struct Images {
  std::vector<ImageSize> sizes;
  std::vector<float> x;
  Segments segments;
  int64_t channels = 0;

  void add(const Pixels& pixels, int64_t image) {
    sizes.push_back(pixels.size), channels = pixels.channels;
    pixels.add_rows(image, x);
    segments = nn::image_segments(sizes);
  }
  nn::ImageRows rows() const {
    return {
        .x = Tensor::from(x, {segments.rows(), channels}), .segments = &segments, .sizes = &sizes};
  }
};

class VisionParity : public ::testing::TestWithParam<const char*> {
 protected:
  VisionParity()
      : file(SafetensorsFile::open(
            fmt::format("{}/vision/{}.safetensors", testing::kFixtures, GetParam()))) {
    for (int64_t k = 0; file.find(fmt::format("pixel_values.{}", k)) != nullptr; ++k) {
      const std::string name = fmt::format("pixel_values.{}", k);
      const std::vector<int64_t> s = file.info(name).shape;
      pixels.push_back({s[0], s[1], {s[2], s[3]}, floats(file, name)});
      for (int64_t i = 0; i < s[0]; ++i) all.add(pixels.back(), i);
    }
  }

  // The model directory with the weights under other names.
  LoadedModel load(const std::function<std::string(std::string)>& rename = {}) {
    std::vector<NamedTensorView> views;
    const std::set<std::string> others = named(file, {"pixel_values", "out.", "label", "loss"});
    for (const std::string& name : file.names()) {
      if (others.contains(name) || name.starts_with("grad.")) continue;
      const StoredTensor& info = file.info(name);
      views.push_back({rename ? rename(name) : name, info.dtype, info.shape, info.bytes});
    }
    dir_.write("config.json", file.metadata().at("config"));
    write_safetensors(dir_ / "model.safetensors", views);
    return load_model(dir_.path());
  }

  std::vector<int32_t> labels(const std::string& key) const {
    std::vector<int32_t> all_labels;
    for (size_t k = 0; k < pixels.size(); ++k) {
      for (const int64_t l : integers(file, fmt::format("{}.{}", key, k))) {
        all_labels.push_back(static_cast<int32_t>(l));
      }
    }
    return all_labels;
  }

  SafetensorsFile file;
  std::vector<Pixels> pixels;
  Images all;
  TemporaryFolder dir_;
};

// Every output of a pass over one batch, by its name: hidden states, attention maps, what the head
// gives.
struct Outputs {
  std::map<std::string, std::vector<float>> values;

  Outputs(const ImageModel& model, const Images& images, const nn::Run& given = {}) {
    const NoGrad off;
    nn::Observer observer;
    observer.hidden = [&](const std::string& name, const Tensor& x) { add(name, x); };
    observer.attention = [&](const nn::AttentionCall& call) {
      for (int64_t s = 0; s < call.queries().count(); ++s) {
        for (int64_t h = 0; h < call.heads(); ++h) add(call.name(), call.weights(s, h));
      }
    };
    nn::Run run = given;
    run.observer = &observer;
    for (const ModelOutput& o : model.forward(images.rows(), run)) add(o.name, o.x);
    if (values.contains("last_hidden_state")) return;
    add("last_hidden_state", model.hidden(images.rows(), given));
  }
  void add(const std::string& name, const Tensor& x) {
    const std::vector<float> more = x.to_floats();
    values[name].insert(values[name].end(), more.begin(), more.end());
  }
};

std::string report_of(const SafetensorsFile& file, const std::vector<Pixels>& pixels,
                      const ImageModel& model, DType compute, double tolerance) {
  Comparison comparison(file, tolerance);
  for (size_t k = 0; k < pixels.size(); ++k) {
    Images images;
    for (int64_t i = 0; i < pixels[k].count; ++i) images.add(pixels[k], i);
    for (const auto& [name, values] : Outputs(model, images, {.compute = compute}).values) {
      const std::string there = fmt::format("out.{}.{}", k, name);
      if (name != "last_hidden_state" || file.find(there)) comparison.add(there, values);
    }
  }
  EXPECT_EQ(comparison.names(), named(file, {"out."}));
  ::testing::Test::RecordProperty("worst_relative_error",
                                  fmt::format("{:.2e}", comparison.worst()));
  return comparison.report();
}

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

class VisionGradients : public VisionParity {
 protected:
  // The mean over the images; what a teacher teaches beside.
  Tensor loss(const Model& model, const nn::Run& run) const {
    const nn::ImageRows images = all.rows();
    const Tensor h = model.hidden(images, run);
    const CrossEntropyOptions mean{.grad_scale = 1 / static_cast<float>(all.sizes.size())};
    const Heads& heads = model.heads();
    if (!heads.distilled_classes) {
      return cross_entropy(heads.sequence_classes(h, images, run), labels("labels"), mean).loss;
    }
    return add(
        cross_entropy(heads.own_classes(h, images, run), labels("labels"), mean).loss,
        cross_entropy(heads.distilled_classes(h, images, run), labels("distilled_labels"), mean)
            .loss);
  }

  std::map<std::string, std::vector<float>> gradients(LoadedModel& model, const nn::Run& run) {
    const Tensor total = loss(*model.model, run);
    std::map<std::string, std::vector<float>> values = {{"loss", total.to_floats()}};
    backward(total);
    for (auto& p : model.parameters.all()) {
      EXPECT_TRUE(p->grad().defined()) << p->name() << " has no gradient";
      for (const nn::Part& part : p->parts())
        values["grad." + part.name] = part_of(p->grad(), part);
      p->grad() = Tensor();
    }
    return values;
  }
};

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
