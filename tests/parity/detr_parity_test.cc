// DETR against transformers in float64: model directories loaded as they are, images of several
// sizes in one batch, the loss with its matching, gradients.
#include "heddle/models/detector.h"
#include "heddle/train/tasks/images/set_loss.h"
#include "tests/parity/image_parity.h"

namespace heddle {
namespace {

// Of the largest magnitude. Worst seen: 1.1e-5 of outputs in f32, 3.3e-2 of what is judged in bf16:
// what the heads read and give, as attention of 30 cells by a few large scores differs by more.
constexpr double kF32 = 1e-4, kGradients = 1e-3, kBf16 = 0.1;

class DetrParity : public ::testing::TestWithParam<const char*>, protected ImageFixture {
 protected:
  DetrParity() : ImageFixture(fmt::format("vision/{}", GetParam())) {}
};

TEST_P(DetrParity, every_output_matches_transformers) {
  const LoadedModel model = load();
  const auto pass = [&](const Images& images) { return outputs(*model.model, images); };
  EXPECT_EQ(report(pass, kF32), "");
}

TEST_P(DetrParity, last_states_and_what_the_heads_give_in_bf16_match_transformers) {
  const LoadedModel model = load();
  const auto pass = [&](const Images& images) {
    return outputs(*model.model, images, {.compute = DType::bf16});
  };
  EXPECT_EQ(report(pass, kBf16, {".last_hidden_state", ".logits", ".pred_boxes"}), "");
}

INSTANTIATE_TEST_SUITE_P(Fixtures, DetrParity,
                         ::testing::Values("detr", "detr_auxiliary", "detr_normed", "detr_states",
                                           "detr_swin"),
                         [](const auto& fixture) { return std::string(fixture.param); });

class DetrLoss : public DetrParity {
 protected:
  train::BatchObjects objects() const {
    train::BatchObjects of_images;
    for (int64_t i = 0; i < pixels[0].count; ++i) {
      const std::vector<int64_t> labels = integers(file, fmt::format("labels.{}", i));
      const std::vector<float> boxes = floats(file, fmt::format("boxes.{}", i));
      auto& of_image = of_images.emplace_back();
      for (size_t o = 0; o < labels.size(); ++o) {
        of_image.push_back({static_cast<int32_t>(labels[o]),
                            {boxes[4 * o], boxes[4 * o + 1], boxes[4 * o + 2], boxes[4 * o + 3]}});
      }
    }
    return of_images;
  }
  bool has_auxiliary() const {
    const std::string& config = file.metadata().at("config");
    return config.find("\"auxiliary_loss\": true") != std::string::npos ||
           config.find("\"layer_losses\": true") != std::string::npos;
  }

  Values gradients(LoadedModel& loaded, const nn::Run& run) {
    const auto& model = *loaded.model->as<Detector>();
    const Images images = batch(0);
    const DetectorFacts& facts = model.detector();
    const int64_t layers = has_auxiliary() ? facts.layers : 1;
    const ObjectPredictions seen = model.predict(images.rows(), has_auxiliary(), run);
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
    backward(total);
    Values values = take_gradients(loaded);
    values["loss"] = total.to_floats();
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

INSTANTIATE_TEST_SUITE_P(Fixtures, DetrLoss,
                         ::testing::Values("detr", "detr_auxiliary", "detr_normed"),
                         [](const auto& fixture) { return std::string(fixture.param); });

// As transformers 5 saves it with save_original_format=False.
TEST(DetrOverSwin, newer_names_load_alike) {
  class Fixture : public ImageFixture {
   public:
    Fixture() : ImageFixture("vision/detr_swin") {}
  } fixture;
  const std::pair<const char*, const char*> newer[] = {
      {"backbone.conv_encoder.model.e", "backbone.model.swin.e"},
      {"backbone.conv_encoder", "backbone"},
      {"attention.self.relative_position_bias_table",
       "attention.relative_position_bias.relative_position_bias_table"},
      {"attention.self.query", "attention.q_proj"},
      {"attention.self.key", "attention.k_proj"},
      {"attention.self.value", "attention.v_proj"},
      {"attention.output.dense", "attention.o_proj"},
      {"intermediate.dense", "mlp.fc1"},
      {"output.dense", "mlp.fc2"},
      {"out_proj", "o_proj"},
      {"layers.0.fc", "layers.0.mlp.fc"}};
  const LoadedModel expected = fixture.load();
  expect_same_parameters(fixture.load([&](std::string name) {
    for (const auto& [old, now] : newer) {
      if (const size_t at = name.find(old); at != name.npos) {
        name.replace(at, std::string(old).size(), now);
      }
    }
    return name;
  }),
                         expected);
}

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
