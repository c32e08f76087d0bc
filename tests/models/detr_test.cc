// What DETR is beside its numbers (tests/parity): noised queries stand apart from learned ones and
// from each other, conditional queries look from their points, what it reads of a backbone.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "heddle/autograd/tape.h"
#include "heddle/models/backbone.h"
#include "heddle/models/detector.h"
#include "heddle/ops/elementwise.h"
#include "heddle/ops/reduce.h"
#include "tests/base/temporary.h"
#include "tests/models/numbered_images.h"
#include "tests/nn/slopes.h"

namespace heddle {
namespace {

constexpr int64_t kLayers = 2;

Json small(bool is_conditional = false) {
  Json json = Json::parse(R"({"model_type": "detr", "d_model": 16, "num_queries": 4,
      "encoder_layers": 1, "decoder_layers": 2, "encoder_attention_heads": 2,
      "decoder_attention_heads": 2, "encoder_ffn_dim": 24, "decoder_ffn_dim": 24, "dropout": 0,
      "init_std": 1, "layer_losses": true, "denoising_groups": 3, "num_labels": 3,
      "backbone_config": {"model_type": "resnet", "norm": "group", "norm_groups": 4,
                          "layer_type": "basic", "embedding_size": 8, "hidden_sizes": [8, 16],
                          "depths": [1, 1]}})");
  if (is_conditional) json["conditional_queries"] = true;
  return json;
}

// Two images of random pixels: with two objects and with one, in three groups. The parameter:
// whether queries are conditional.
class Denoising : public ::testing::TestWithParam<bool> {
 protected:
  explicit Denoising(bool is_conditional = GetParam())
      : model_(make_model(Scope(parameters_), small(is_conditional))) {}
  static NoisedObjects objects() {
    NoisedObjects all{.groups = 3, .counts = {2, 1}};
    for (int32_t i = 0; i < 9; ++i) {
      const float place = 0.1f * static_cast<float>(i + 1);
      all.labels.push_back(i % 3);
      all.boxes.push_back({place, 1 - place, 0.2f, 0.3f});
    }
    return all;
  }
  nn::ImageRows images() const { return images_.rows(); }
  const Detector& detector() const { return model_->need<Detector>("model"); }
  ObjectPredictions predict(NoisedObjects* noised, DType compute = DType::f32) const {
    const NoGrad off;
    return detector().predict(images(), true, {.compute = compute}, noised);
  }
  nn::Parameter& parameter(const std::string& name) {
    for (auto& p : parameters_.all()) {
      if (p->name() == name) return *p;
    }
    fail(ErrorKind::internal, "no parameter {}", name);
  }
  void fill(const std::string& name, float value) {
    const Tensor& x = parameter(name).value();
    std::fill_n(x.data<float>(), x.elements(), value);
    parameter(name).changed(true);
  }

  nn::Parameters parameters_{1};

 private:
  std::unique_ptr<Model> model_;
  const NumberedImages images_{{{0, {32, 40}}, {1, {24, 32}}}};
};

// The boxes and logits of one row.
std::vector<float> row_of(const ObjectPredictions& seen, int64_t row) {
  std::vector<float> all;
  for (const Tensor& x : {seen.logits, seen.boxes}) {
    const std::vector<float> values = x.to_floats();
    const int64_t width = x.size(1);
    all.insert(all.end(), values.begin() + row * width, values.begin() + (row + 1) * width);
  }
  return all;
}

TEST_P(Denoising, learned_queries_see_the_same_bits_beside_noised_ones) {
  for (const DType compute : {DType::f32, DType::bf16}) {
    NoisedObjects noised = objects();
    const ObjectPredictions alone = predict(nullptr, compute), beside = predict(&noised, compute);
    EXPECT_EQ(beside.logits.to_floats(), alone.logits.to_floats()) << dtype_name(compute);
    EXPECT_EQ(beside.boxes.to_floats(), alone.boxes.to_floats()) << dtype_name(compute);
    EXPECT_EQ(noised.restored.boxes.shape(), Shape({kLayers * 9, 4}));
  }
}

TEST_P(Denoising, group_sees_no_other_group) {
  NoisedObjects before = objects(), after = objects();
  after.boxes[2] = {0.6f, 0.6f, 0.1f, 0.1f};  // the first object of the first image's second group
  predict(&before), predict(&after);
  for (int64_t row = 0; row < kLayers * 9; ++row) {
    const bool is_of_group = row % 9 == 2 || row % 9 == 3;
    EXPECT_EQ(row_of(before.restored, row) != row_of(after.restored, row), is_of_group) << row;
  }
}

TEST_P(Denoising, batch_without_objects_is_one_without_noise) {
  NoisedObjects none{.groups = 3, .counts = {0, 0}};
  EXPECT_EQ(predict(&none).boxes.to_floats(), predict(nullptr).boxes.to_floats());
  EXPECT_FALSE(none.restored.boxes.defined());
}

INSTANTIATE_TEST_SUITE_P(Queries, Denoising, ::testing::Bool(), [](const auto& is_conditional) {
  return std::string(is_conditional.param ? "conditional" : "plain");
});

class ConditionalQueries : public Denoising {
 protected:
  ConditionalQueries() : Denoising(true) {}

  static double logit(float p) { return std::log(double{p} / (1 - double{p})); }
  // What a pass gives, that of noised queries too.
  std::vector<Tensor> outputs(const nn::Run& run) const {
    NoisedObjects noised = objects();
    const ObjectPredictions seen = detector().predict(images(), true, run, &noised);
    return {seen.logits, seen.boxes, noised.restored.logits, noised.restored.boxes};
  }
  static Tensor factors(const Tensor& x, size_t i) {
    return nn::random_rows(x.size(0), x.size(1), static_cast<uint32_t>(i + 1));
  }
  // The sum of all of it times random factors; a number of double for differences.
  struct Sum {
    double sum = 0;
    double item() const { return sum; }
  };
  Sum exact_loss() const {
    Sum all;
    const std::vector<Tensor> x = outputs({});
    for (size_t i = 0; i < x.size(); ++i) {
      const std::vector<float> values = x[i].to_floats(), by = factors(x[i], i).to_floats();
      for (size_t k = 0; k < values.size(); ++k) all.sum += double{values[k]} * double{by[k]};
    }
    return all;
  }
  Tensor loss(const nn::Run& run) const {
    const std::vector<Tensor> x = outputs(run);
    Tensor sum = dot(x[0], factors(x[0], 0));
    for (size_t i = 1; i < x.size(); ++i) sum = add(sum, dot(x[i], factors(x[i], i)));
    return sum;
  }
  std::map<std::string, std::vector<float>> gradients(const nn::Run& run) {
    backward(loss(run));
    std::map<std::string, std::vector<float>> all;
    for (auto& p : parameters_.all()) {
      if (p->grad().defined()) all[p->name()] = p->grad().to_floats();
      p->grad() = Tensor();
    }
    return all;
  }
};

TEST_F(ConditionalQueries, moving_its_point_moves_a_query_s_box) {
  const NoGrad off;
  const Tensor h = nn::random_rows(8, 16, 5);  // states of two images' queries
  const std::vector<float> before = detector().heads().boxes(h, {}).to_floats();
  const std::vector<float> seen = predict(nullptr).boxes.to_floats();
  const Tensor& bias = parameter("model.decoder.points.layers.1.bias").value();
  bias.data<float>()[0] += 0.5f;
  parameter("model.decoder.points.layers.1.bias").changed(true);
  const std::vector<float> after = detector().heads().boxes(h, {}).to_floats();
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_NEAR(logit(after[i]) - logit(before[i]), i % 4 == 0 ? 0.5 : 0, 1e-4) << i;
  }
  // What a query looks at changes too, and so all of its box.
  const std::vector<float> seen_after = predict(nullptr).boxes.to_floats();
  for (size_t i = 0; i < seen.size(); ++i) EXPECT_NE(seen_after[i], seen[i]) << i;
}

TEST_F(ConditionalQueries, points_of_noised_queries_are_the_middles_of_their_boxes) {
  fill("bbox_predictor.layers.2.weight", 0), fill("bbox_predictor.layers.2.bias", 0);
  NoisedObjects noised = objects();
  predict(&noised);
  const std::vector<float> boxes = noised.restored.boxes.to_floats();
  for (size_t i = 0; i < boxes.size(); ++i) {
    const float middle = noised.boxes[i / 4 % noised.boxes.size()][i % 2];
    EXPECT_NEAR(boxes[i], i % 4 < 2 ? middle : 0.5f, 1e-5) << i;
  }
}

TEST_F(ConditionalQueries, gradients_are_the_slopes_of_the_loss) {
  // By differences of f32, over ReLU's kinks.
  const std::map<std::string, std::vector<float>> all = gradients({});
  for (const char* name :
       {"model.decoder.points.layers.0.weight", "model.decoder.points.layers.1.bias",
        "model.decoder.point_scale.layers.1.weight",
        "model.decoder.layers.0.encoder_attn.spatial_q_proj.weight",
        "model.decoder.layers.1.encoder_attn.spatial_q_proj.weight",
        "model.decoder.layers.1.encoder_attn.spatial_k_proj.weight",
        "model.query_position_embeddings.weight"}) {
    nn::Parameter& p = parameter(name);
    p.grad() = Tensor::from(all.at(name), p.shape());
    EXPECT_NEAR(nn::slope_along_gradient(p, [&] { return exact_loss(); }), 1, 0.05) << name;
    EXPECT_NEAR(nn::slope_apart_from_gradient(p, [&] { return exact_loss(); }), 0, 0.2) << name;
    p.grad() = Tensor();
  }
}

TEST_F(ConditionalQueries, layers_that_are_computed_again_give_the_same_bits) {
  for (const DType compute : {DType::f32, DType::bf16}) {
    EXPECT_EQ(gradients({.compute = compute, .recompute = true}), gradients({.compute = compute}));
  }
}

std::set<std::string> tensor_names(const Json& config) {
  nn::Parameters parameters = nn::Parameters::shapes_alone();
  const auto model = make_model(nn::Scope(parameters), config);
  std::set<std::string> names;
  parameters.for_each_tensor(
      [&](const std::string& name, const Shape&, const float*) { names.insert(name); });
  return names;
}

TEST(DetrConfig, conditional_queries_are_told_by_their_tensors_and_key_alone) {
  Json json = small();
  json["conditional_queries"] = false;
  EXPECT_EQ(read_model_config(json, "config.json")->json(),
            read_model_config(small(), "config.json")->json());
  EXPECT_EQ(read_model_config(json, "config.json")->json().find("conditional_queries"), nullptr);
  EXPECT_TRUE(read_model_config(small(true), "a")->json().at("conditional_queries").as_bool());
  const std::set<std::string> plain = tensor_names(small());
  std::set<std::string> more;
  for (const std::string& name : tensor_names(small(true))) {
    if (!plain.contains(name)) more.insert(name);
  }
  std::set<std::string> wanted;
  for (const char* layer :
       {"points.layers.0", "points.layers.1", "point_scale.layers.0", "point_scale.layers.1",
        "layers.0.encoder_attn.spatial_q_proj", "layers.0.encoder_attn.spatial_k_proj",
        "layers.1.encoder_attn.spatial_q_proj", "layers.1.encoder_attn.spatial_k_proj"}) {
    for (const char* leaf : {"weight", "bias"}) {
      wanted.insert(fmt::format("model.decoder.{}.{}", layer, leaf));
    }
  }
  EXPECT_EQ(more, wanted);
}

TEST(DetrConfig, sigmoids_have_a_logit_a_label_and_are_rare_at_the_start) {
  Json json = small();
  EXPECT_EQ(read_model_config(json, "a")->json().find("class_loss"), nullptr);
  json["class_loss"] = "mal";
  EXPECT_EQ(read_model_config(json, "a")->json().get_string("class_loss"), "mal");
  nn::Parameters parameters(1);
  const auto model = make_model(nn::Scope(parameters), json);
  EXPECT_TRUE(model->need<Detector>("model").detector().loss.has_sigmoids());
  const NoGrad off;
  const Tensor logits = model->heads().object_classes(Tensor::zeros({2, 16}, DType::f32), {});
  EXPECT_EQ(logits.shape(), Shape({2, 3}));
  for (const float x : logits.to_floats()) EXPECT_NEAR(1 / (1 + std::exp(-double{x})), 0.01, 1e-6);
  json["class_loss"] = "focal";
  expect_error(ErrorKind::data, {"a/config.json", "class_loss", "focal", "mal"},
               [&] { read_model_config(json, "a/config.json"); });
}

TEST(DetrConfig, points_without_sines_of_cells_are_refused) {
  Json json = small(true);
  json["position_embedding_type"] = "learned";
  expect_error(ErrorKind::data, {"config.json", "conditional_queries", "position_embedding_type"},
               [&] { read_model_config(json, "config.json"); });
}

// The fields "loss of each layer, norm between layers", and the keys as they are written.
std::string losses_of(const std::string& keys) {
  const auto config = read_model_config(
      Json::parse(fmt::format(R"({{"model_type": "detr"{}}})", keys)), "config.json");
  const Json fields = to_json(config->fields()), written = config->json();
  const Json* const own = written.find("layer_losses");
  const auto again = read_model_config(written, "config.json");
  EXPECT_EQ(to_json(again->fields()), fields);
  return fmt::format("{} {}, {} {}", fields.at("auxiliary_loss").dump(),
                     fields.at("norm_between_layers").dump(), written.at("auxiliary_loss").dump(),
                     own == nullptr ? "-" : own->dump());
}

TEST(DetrConfig, auxiliary_loss_says_in_a_file_what_transformers_computes) {
  EXPECT_EQ(losses_of(""), "false false, false -");
  EXPECT_EQ(losses_of(R"(, "auxiliary_loss": true)"), "true true, true true");
  EXPECT_EQ(losses_of(R"(, "layer_losses": true)"), "true false, false true");
  EXPECT_EQ(losses_of(R"(, "auxiliary_loss": true, "layer_losses": false)"),
            "false true, true false");
  // As heddle wrote it before it had the second key, and such a file that transformers has saved.
  const std::string before = R"(, "auxiliary_loss": true, "normalize_before": false)";
  EXPECT_EQ(losses_of(before), "true false, false true");
  EXPECT_EQ(losses_of(before + R"(, "transformers_version": "5.24.0")"), "true true, true true");
  expect_error(ErrorKind::data, {"config.json", "layer_losses"},
               [] { losses_of(R"(, "layer_losses": 1)"); });
}

TEST(DetrConfig, groups_without_bound_are_refused) {
  Json json = small();
  json["denoising_groups"] = 1001;
  expect_error(ErrorKind::data, {"config.json", "denoising_groups"},
               [&] { read_model_config(json, "config.json"); });
}

int64_t channels_of(const std::string& more) {
  nn::Parameters parameters = nn::Parameters::shapes_alone();
  const Json json = Json::parse(R"({"model_type": "resnet", "layer_type": "basic",
      "embedding_size": 8, "hidden_sizes": [8, 12, 16], "depths": [1, 1, 1])" +
                                more + "}");
  return ChosenBackbone(Scope(parameters), json, 3, "a/config.json").channels();
}

TEST(ChosenBackbone, map_is_the_last_that_is_named) {
  EXPECT_EQ(channels_of(""), 16);
  EXPECT_EQ(channels_of(R"(, "out_features": null, "out_indices": [])"), 16);
  EXPECT_EQ(channels_of(R"(, "out_features": ["stage1", "stage2"], "out_indices": [1, 2])"), 12);
  EXPECT_EQ(channels_of(R"(, "out_features": ["layer1"])"), 8);
  EXPECT_EQ(channels_of(R"(, "out_indices": [1, 2])"), 12);
  EXPECT_EQ(channels_of(R"(, "out_indices": [-1])"), 16);
  EXPECT_EQ(channels_of(R"(, "out_indices": [-3])"), 8);
}

TEST(ChosenBackbone, map_that_is_not_there_is_an_error_that_names_it) {
  const auto refused = [](const std::string& key, const std::string& value) {
    expect_error(ErrorKind::data, {"a/config.json", key, value},
                 [&] { channels_of(fmt::format(R"(, "{}": [{}])", key, value)); });
  };
  for (const char* name : {"stage4", "stage0", "stage-1", "stage", "stage2x", "stem",
                           "stage99999999999999999999", "stage-9223372036854775808"}) {
    refused("out_features", fmt::format("\"{}\"", name));
  }
  for (const char* index : {"0", "4", "-4", "9223372036854775807", "-9223372036854775808"}) {
    refused("out_indices", index);
  }
  expect_error(ErrorKind::data, {"out_indices"}, [] { channels_of(R"(, "out_indices": ["1"])"); });
}

int64_t timm_channels(const char* name, const char* more = "{}",
                      const std::function<void(const std::string&)>& name_of = {}) {
  nn::Parameters parameters = nn::Parameters::shapes_alone();
  Json json = Json::parse(more);
  json["model_type"] = "timm_backbone";
  json["backbone"] = name;
  const ChosenBackbone backbone(Scope(parameters), json, 3, "a/config.json");
  for (const auto& p : parameters.all()) {
    if (name_of) name_of(p->name());
  }
  return backbone.channels();
}

// timm leaves out what lies behind the last map that is asked for.
TEST(ChosenBackbone, timm_network_ends_with_the_last_map) {
  for (const auto& [keys, width] :
       std::map<const char*, int64_t>{{R"({"out_indices": [3]})", 256},
                                      {R"({"out_indices": [-2]})", 256},
                                      {R"({"out_indices": [1, 2]})", 128},
                                      {R"({"out_indices": [-1]})", 512},
                                      {"{}", 512}}) {
    std::set<std::string> stages;
    EXPECT_EQ(timm_channels("resnet18", keys,
                            [&](const std::string& name) {
                              if (name.starts_with("layer")) stages.insert(name.substr(0, 6));
                            }),
              width)
        << keys;
    EXPECT_EQ(int64_t{64} << (stages.size() - 1), width) << keys;
  }
}

TEST(ChosenBackbone, timm_network_with_dilation_is_refused) {
  for (const char* keys : {R"({"output_stride": 16})", R"({"output_stride": 8})"}) {
    expect_error(ErrorKind::data, {"a/config.json", "output_stride"},
                 [&] { timm_channels("resnet18", keys); });
  }
  nn::Parameters parameters = nn::Parameters::shapes_alone();
  const char* const older = R"({"model_type": "detr", "backbone": "resnet18",
      "use_timm_backbone": true, "backbone_config": null,
      "backbone_kwargs": {"output_stride": 16, "out_indices": [1, 2, 3, 4], "in_chans": 3}})";
  expect_error(ErrorKind::data, {"output_stride", "16"},
               [&] { make_model(Scope(parameters), Json::parse(older), "a/config.json"); });
}

TEST(ChosenBackbone, timm_has_no_others_than_resnets) {
  const auto make = [](const char* name) { return timm_channels(name); };
  EXPECT_EQ(make("resnet18"), 512);
  EXPECT_EQ(make("resnet152"), 2048);
  EXPECT_EQ(timm_channels("resnet18", R"({"out_indices": [1, 2, 3, 4], "output_stride": 32})"),
            512);
  for (const char* name : {"resnet51", "vit_base_patch16_224", "convnext_tiny"}) {
    expect_error(ErrorKind::data, {"a/config.json", name}, [&] { make(name); });
  }
}

}  // namespace
}  // namespace heddle
