// What DETR is beside its numbers (tests/parity): noised queries stand apart from learned ones and
// from each other, what it reads of a backbone.
#include <gtest/gtest.h>

#include "heddle/models/backbone.h"
#include "heddle/models/detector.h"
#include "tests/base/temporary.h"
#include "tests/models/numbered_images.h"

namespace heddle {
namespace {

constexpr int64_t kLayers = 2;

Json small() {
  return Json::parse(R"({"model_type": "detr", "d_model": 16, "num_queries": 4,
      "encoder_layers": 1, "decoder_layers": 2, "encoder_attention_heads": 2,
      "decoder_attention_heads": 2, "encoder_ffn_dim": 24, "decoder_ffn_dim": 24, "dropout": 0,
      "init_std": 1, "auxiliary_loss": true, "denoising_groups": 3, "num_labels": 3,
      "backbone_config": {"model_type": "resnet", "norm": "group", "norm_groups": 4,
                          "layer_type": "basic", "embedding_size": 8, "hidden_sizes": [8, 16],
                          "depths": [1, 1]}})");
}

// Two images of random pixels: with two objects and with one, in three groups.
class Denoising : public ::testing::Test {
 protected:
  Denoising() : model_(make_model(Scope(parameters_), small())) {}
  static NoisedObjects objects() {
    NoisedObjects all{.groups = 3, .counts = {2, 1}};
    for (int32_t i = 0; i < 9; ++i) {
      const float place = 0.1f * static_cast<float>(i + 1);
      all.labels.push_back(i % 3);
      all.boxes.push_back({place, 1 - place, 0.2f, 0.3f});
    }
    return all;
  }
  ObjectPredictions predict(NoisedObjects* noised, DType compute = DType::f32) const {
    const NoGrad off;
    return model_->need<Detector>("model").predict(images_.rows(), true, {.compute = compute},
                                                   noised);
  }

 private:
  nn::Parameters parameters_{1};
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

TEST_F(Denoising, learned_queries_see_the_same_bits_beside_noised_ones) {
  for (const DType compute : {DType::f32, DType::bf16}) {
    NoisedObjects noised = objects();
    const ObjectPredictions alone = predict(nullptr, compute), beside = predict(&noised, compute);
    EXPECT_EQ(beside.logits.to_floats(), alone.logits.to_floats()) << dtype_name(compute);
    EXPECT_EQ(beside.boxes.to_floats(), alone.boxes.to_floats()) << dtype_name(compute);
    EXPECT_EQ(noised.restored.boxes.shape(), Shape({kLayers * 9, 4}));
  }
}

TEST_F(Denoising, group_sees_no_other_group) {
  NoisedObjects before = objects(), after = objects();
  after.boxes[2] = {0.6f, 0.6f, 0.1f, 0.1f};  // the first object of the first image's second group
  predict(&before), predict(&after);
  for (int64_t row = 0; row < kLayers * 9; ++row) {
    const bool is_of_group = row % 9 == 2 || row % 9 == 3;
    EXPECT_EQ(row_of(before.restored, row) != row_of(after.restored, row), is_of_group) << row;
  }
}

TEST_F(Denoising, batch_without_objects_is_one_without_noise) {
  NoisedObjects none{.groups = 3, .counts = {0, 0}};
  EXPECT_EQ(predict(&none).boxes.to_floats(), predict(nullptr).boxes.to_floats());
  EXPECT_FALSE(none.restored.boxes.defined());
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

TEST(ChosenBackbone, timm_has_no_others_than_resnets) {
  const auto make = [](const char* name) {
    nn::Parameters parameters = nn::Parameters::shapes_alone();
    const Json json = Json::object({{"model_type", "timm_backbone"}, {"backbone", name}});
    return ChosenBackbone(Scope(parameters), json, 3, "a/config.json").channels();
  };
  EXPECT_EQ(make("resnet18"), 512);
  EXPECT_EQ(make("resnet152"), 2048);
  for (const char* name : {"resnet51", "vit_base_patch16_224", "convnext_tiny"}) {
    expect_error(ErrorKind::data, {"a/config.json", name}, [&] { make(name); });
  }
}

}  // namespace
}  // namespace heddle
