// DETR against transformers in float64: model directories loaded as they are, images of several
// sizes in one batch, the loss with its matching, gradients.
#include <gtest/gtest.h>

#include <map>

#include "heddle/infer/loading/loaded_model.h"
#include "heddle/models/detector.h"
#include "heddle/train/tasks/set_loss.h"
#include "tests/base/temporary.h"
#include "tests/parity/comparison.h"
#include "tests/support/places.h"

namespace heddle {
namespace {

// Of the largest magnitude. Worst seen: 1.1e-5 of outputs in f32. bf16 is judged by what the heads
// give: attention of 30 cells by a few large scores differs by more.
constexpr double kF32 = 1e-4, kGradients = 1e-3, kBf16 = 0.15;

using Values = std::map<std::string, std::vector<float>>;

void append(std::vector<float>& all, const std::vector<float>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

// Images of a fixture, end to end.
struct Batch {
  std::vector<ImageSize> sizes;
  std::vector<float> x;
  Segments segments;

  // Image `one` of pixel_values.k, or all of them if it is -1.
  void add(const SafetensorsFile& file, int64_t k, int64_t one = -1) {
    const std::string name = fmt::format("pixel_values.{}", k);
    const std::vector<int64_t> s = file.info(name).shape;
    const std::vector<float> values = floats(file, name);
    const int64_t area = s[2] * s[3];
    for (int64_t i = 0; i < s[0]; ++i) {
      if (one >= 0 && i != one) continue;
      sizes.push_back({s[2], s[3]});
      for (int64_t at = 0; at < area * 3; ++at) {
        x.push_back(values[static_cast<size_t>((i * 3 + at % 3) * area + at / 3)]);
      }
    }
    segments = nn::image_segments(sizes);
  }
  nn::ImageRows rows() const {
    return {.x = Tensor::from(x, {segments.rows(), 3}), .segments = &segments, .sizes = &sizes};
  }
};

// Every output of a pass over one batch, under the names of transformers.
Values outputs(const Model& model, const Batch& batch, const nn::Run& given = {}) {
  const NoGrad off;
  Values values;
  const auto add = [&](const std::string& name, const Tensor& x) {
    append(values[name], x.to_floats());
  };
  nn::Observer observer;
  observer.hidden = add;
  observer.attention = [&](const nn::AttentionCall& call) {
    for (int64_t s = 0; s < call.queries().count(); ++s) {
      for (int64_t h = 0; h < call.heads(); ++h) add(call.name(), call.weights(s, h));
    }
  };
  nn::Run run = given;
  run.observer = &observer;
  const nn::ImageRows images = batch.rows();
  for (const ModelOutput& o : model.forward(images, run)) add(o.name, o.x);
  if (!values.contains("last_hidden_state")) {
    add("last_hidden_state", model.hidden(images, given));
  }
  return values;
}

class DetrParity : public ::testing::TestWithParam<const char*> {
 protected:
  DetrParity()
      : file(SafetensorsFile::open(
            fmt::format("{}/vision/{}.safetensors", testing::kFixtures, GetParam()))) {
    while (file.find(fmt::format("pixel_values.{}", groups)) != nullptr) ++groups;
  }

  LoadedModel load() {
    const std::set<std::string> others =
        named(file, {"pixel_values", "out.", "labels.", "boxes.", "loss", "grad."});
    std::vector<NamedTensorView> views;
    for (const std::string& name : file.names()) {
      const StoredTensor& info = file.info(name);
      if (!others.contains(name)) views.push_back({name, info.dtype, info.shape, info.bytes});
    }
    dir_.write("config.json", file.metadata().at("config"));
    write_safetensors(dir_ / "model.safetensors", views);
    return load_model(dir_.path());
  }
  int64_t images(int64_t k) const { return file.info(fmt::format("pixel_values.{}", k)).shape[0]; }
  std::string report(const Model& model, DType compute, double tolerance) {
    Comparison comparison(file, tolerance);
    for (int64_t k = 0; k < groups; ++k) {
      Batch batch;
      batch.add(file, k);
      for (const auto& [name, values] : outputs(model, batch, {.compute = compute})) {
        const bool is_judged = compute == DType::f32 || name == "logits" || name == "pred_boxes";
        if (is_judged) comparison.add(fmt::format("out.{}.{}", k, name), values);
      }
    }
    if (compute == DType::f32) {
      EXPECT_EQ(comparison.names(), named(file, {"out."}));
    }
    RecordProperty("worst_relative_error", fmt::format("{:.2e}", comparison.worst()));
    return comparison.report();
  }

  SafetensorsFile file;
  int64_t groups = 0;
  TemporaryFolder dir_;
};

TEST_P(DetrParity, every_output_matches_transformers) {
  const LoadedModel model = load();
  EXPECT_EQ(report(*model.model, DType::f32, kF32), "");
}

TEST_P(DetrParity, every_output_in_bf16_matches_transformers) {
  const LoadedModel model = load();
  EXPECT_EQ(report(*model.model, DType::bf16, kBf16), "");
}

TEST_P(DetrParity, image_has_the_bits_it_has_alone_in_a_batch_of_all_sizes) {
  const LoadedModel model = load();
  Batch all;
  for (int64_t k = 0; k < groups; ++k) all.add(file, k);
  for (const DType compute : {DType::f32, DType::bf16}) {
    Values alone;
    for (int64_t k = 0; k < groups; ++k) {
      for (int64_t i = 0; i < images(k); ++i) {
        Batch one;
        one.add(file, k, i);
        for (const auto& [name, values] : outputs(*model.model, one, {.compute = compute})) {
          append(alone[name], values);
        }
      }
    }
    EXPECT_EQ(alone, outputs(*model.model, all, {.compute = compute})) << dtype_name(compute);
  }
}

TEST_P(DetrParity, saved_model_has_the_tensors_of_the_checkpoint_and_gives_the_same_bits) {
  const LoadedModel model = load();
  const char* const kept = std::getenv("HEDDLE_KEEP");  // for tools/make_detr_fixtures.py --check
  const std::string folder = kept ? fmt::format("{}/{}", kept, GetParam()) : dir_ / "again";
  save_model(folder, *model.model, model.parameters);
  const SafetensorsFile saved = SafetensorsFile::open(folder + "/model.safetensors");
  for (const std::string& name : saved.names()) {
    ASSERT_NE(file.find(name), nullptr) << name;
    EXPECT_EQ(saved.info(name).shape, file.info(name).shape) << name;
    EXPECT_EQ(floats(saved, name), floats(file, name)) << name;
  }
  const LoadedModel again = load_model(folder);
  EXPECT_EQ(again.model->config().json(), model.model->config().json());
  Batch all;
  for (int64_t k = 0; k < groups; ++k) all.add(file, k);
  EXPECT_EQ(outputs(*again.model, all), outputs(*model.model, all));
}

INSTANTIATE_TEST_SUITE_P(Fixtures, DetrParity,
                         ::testing::Values("detr", "detr_auxiliary", "detr_states", "detr_swin"),
                         [](const auto& fixture) { return std::string(fixture.param); });

class DetrLoss : public DetrParity {
 protected:
  train::BatchObjects objects() const {
    train::BatchObjects all;
    for (int64_t i = 0; i < images(0); ++i) {
      const std::vector<int64_t> labels = integers(file, fmt::format("labels.{}", i));
      const std::vector<float> boxes = floats(file, fmt::format("boxes.{}", i));
      auto& of_image = all.emplace_back();
      for (size_t o = 0; o < labels.size(); ++o) {
        of_image.push_back({static_cast<int32_t>(labels[o]),
                            {boxes[4 * o], boxes[4 * o + 1], boxes[4 * o + 2], boxes[4 * o + 3]}});
      }
    }
    return all;
  }
  bool has_auxiliary() const {
    return file.metadata().at("config").find("\"auxiliary_loss\": true") != std::string::npos;
  }

  Values gradients(LoadedModel& loaded, const nn::Run& run) {
    const auto& model = *loaded.model->as<Detector>();
    Batch batch;
    batch.add(file, 0);
    const DetectorFacts& facts = model.detector();
    const int64_t layers = has_auxiliary() ? facts.layers : 1;
    const ObjectPredictions seen = model.predict(batch.rows(), has_auxiliary(), run);
    const std::vector<train::Matches> matches =
        train::match_objects(seen, layers, facts.queries, objects(), facts.loss);
    double judged = 0;
    for (int64_t l = 0; l < layers; ++l) {
      judged += train::judge(seen, l, facts.queries, objects(), matches[static_cast<size_t>(l)],
                             facts.loss)
                    .loss(facts.loss);
    }
    const Tensor total = train::set_loss(seen, facts.queries, objects(), matches, facts.loss);
    EXPECT_NEAR(judged, static_cast<double>(total.item()), 1e-5 * judged);
    Values values = {{"loss", total.to_floats()}};
    backward(total);
    for (auto& p : loaded.parameters.all()) {
      if (!p->grad().defined()) continue;
      for (const nn::Part& part : p->parts())
        values["grad." + part.name] = part_of(p->grad(), part);
      p->grad() = Tensor();
    }
    return values;
  }
};

TEST_P(DetrLoss, loss_and_every_gradient_match_transformers) {
  LoadedModel model = load();
  Comparison comparison(file, kGradients);
  for (const auto& [name, values] : gradients(model, {})) {
    // That of the key's bias is rounding: a softmax does not see what is added to all its scores;
    // nor do the first queries see one another, as they begin as zeros.
    const double scale = std::max(1e-3, Comparison::largest(floats(file, name)));
    comparison.add(name, values, name.ends_with("k_proj.bias") ? 1 : scale);
  }
  EXPECT_EQ(comparison.report(), "");
  EXPECT_EQ(comparison.names(), named(file, {"grad.", "loss"}));
  RecordProperty("worst_relative_error", fmt::format("{:.2e}", comparison.worst()));
}

TEST_P(DetrLoss, recomputed_layers_give_the_same_bits) {
  LoadedModel model = load();
  EXPECT_EQ(gradients(model, {.recompute = true}), gradients(model, {}));
}

INSTANTIATE_TEST_SUITE_P(Fixtures, DetrLoss, ::testing::Values("detr", "detr_auxiliary"),
                         [](const auto& fixture) { return std::string(fixture.param); });

TEST(DetrOverTimm, parameters_have_the_names_and_shapes_of_the_checkpoint) {
  const std::string path = std::string(testing::kFixtures) + "/vision/detr_timm.json";
  const Json json = Json::load(path);
  nn::Parameters parameters = nn::Parameters::shapes_alone();
  const auto model = make_model(nn::Scope(parameters), json.at("config"), path);
  std::map<std::string, std::vector<int64_t>> own;
  parameters.for_each_tensor([&](const std::string& name, const Shape& shape, const float*) {
    if (!name.ends_with("num_batches_tracked")) {
      own[name] = {shape.sizes().begin(), shape.sizes().end()};
    }
  });
  std::map<std::string, std::vector<int64_t>> theirs;
  for (const auto& [name, shape] : json.at("shapes").as_object()) theirs[name] = shape.as_ints();
  EXPECT_EQ(own, theirs);
  EXPECT_EQ(model->config().json().at("backbone_config").get_string("backbone"), "resnet50");
}

}  // namespace
}  // namespace heddle
