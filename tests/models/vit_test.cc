// What ViT and DeiT are beside their numbers (tests/parity): configs, errors, randomness in
// training.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/base/temporary.h"
#include "tests/models/numbered_images.h"

namespace heddle {
namespace {

Json small(const std::string& type = "vit") {
  return Json::parse(R"({"model_type": ")" + type + R"(", "image_size": 8, "patch_size": 4,
      "hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 24,
      "num_labels": 3, "initializer_range": 0.5})");
}

std::vector<float> part(const std::vector<float>& all, int64_t begin, int64_t count) {
  return {all.begin() + begin, all.begin() + begin + count};
}

TEST(ImageModel, states_lie_in_segments_of_tokens) {
  nn::Parameters vit_parameters(1), deit_parameters(1);
  const auto vit = make_model(Scope(vit_parameters), small());
  const auto deit = make_model(Scope(deit_parameters), small("deit"));
  const NumberedImages images({{0, {8, 8}}, {1, {11, 17}}});
  EXPECT_EQ(vit->as<ImageModel>()->grid({11, 17}), (ImageSize{2, 4}));
  EXPECT_EQ(vit->as<ImageModel>()->tokens(images.rows()),
            Segments::from_lengths(std::vector<int64_t>{5, 9}));
  EXPECT_EQ(deit->as<ImageModel>()->tokens(images.rows()),
            Segments::from_lengths(std::vector<int64_t>{6, 10}));
  const NoGrad off;
  EXPECT_EQ(deit->hidden(images.rows(), {}).shape(), Shape({16, 16}));
  EXPECT_EQ(vit->forward(images.rows(), {})[0].x.shape(), Shape({2, 3}));
}

TEST(ImageModel, images_that_it_does_not_take_are_errors) {
  nn::Parameters parameters(1);
  const auto model = make_model(Scope(parameters), small());
  const NumberedImages narrow({{0, {8, 3}}});
  expect_error(ErrorKind::data, {"8 x 3", "4 x 4", "made for 8 x 8"},
               [&] { model->hidden(narrow.rows(), {}); });
  nn::ImageRows grey = NumberedImages({{0, {8, 8}}}).rows();
  grey.x = grey.x.slice(1, 0, 1);
  const NumberedImages whole({{0, {8, 8}}});
  grey.segments = &whole.segments, grey.sizes = &whole.sizes;
  expect_error(ErrorKind::shape, {"1 channels", "reads 3"}, [&] { model->hidden(grey, {}); });
  expect_error(ErrorKind::data, {"photos:", "reads tokens", "vit"},
               [&] { model->need<TokenModel>("photos"); });
}

TEST(VitConfig, sizes_of_two_numbers_are_read_and_written) {
  Json json = small();
  json["image_size"] = Json::parse("[8, 12]"), json["patch_size"] = Json::parse("[4, 4]");
  const auto config = read_model_config(json, "config.json");
  EXPECT_EQ(config->json().at("image_size"), json.at("image_size"));
  EXPECT_EQ(config->json().at("patch_size").as_int(), 4);
  nn::Parameters parameters(1);
  EXPECT_EQ(config->make(Scope(parameters))->as<ImageModel>()->facts().image_size,
            (ImageSize{8, 12}));
  EXPECT_EQ(read_model_config(small(), "config.json")->json().at("image_size").as_int(), 8);
  json["patch_size"] = Json::parse("[4, 2]");
  expect_error(ErrorKind::data, {"config.json", "patch_size", "[4, 2]"},
               [&] { read_model_config(json, "config.json"); });
  json["patch_size"] = 16;
  expect_error(ErrorKind::data, {"patch_size is 16", "8 x 12"},
               [&] { read_model_config(json, "config.json"); });
}

Json with(Json json, const char* more) {
  const Json added = Json::parse(more);
  for (const auto& [key, value] : added.as_object()) json[key] = value;
  return json;
}

TEST(VitConfig, keys_of_pooling_that_exclude_each_other_are_errors) {
  const auto refused = [](const char* more, const char* word, const char* other) {
    expect_error(ErrorKind::data, {"config.json", word, other},
                 [&] { (void)read_model_config(with(small(), more), "config.json"); });
  };
  refused(R"({"class_token": false})", "class_token", "pooling mean");
  refused(R"({"norm_after_pooling": true})", "norm_after_pooling", "pooling mean");
  refused(R"({"pooling": "max"})", "pooling", "mean");
  refused(R"({"two_dimensional_positions": true, "hidden_size": 15, "num_attention_heads": 3})",
          "two_dimensional_positions", "15");
}

TEST(VitConfig, own_keys_are_written_where_they_say_something) {
  const Json plain = read_model_config(small(), "config.json")->json();
  for (const char* key :
       {"pooling", "class_token", "norm_after_pooling", "two_dimensional_positions"}) {
    EXPECT_FALSE(plain.contains(key)) << key;
  }
  const Json json = read_model_config(with(small(), R"({"pooling": "mean", "class_token": false,
                             "norm_after_pooling": true, "two_dimensional_positions": true})"),
                                      "config.json")
                        ->json();
  EXPECT_EQ(json.get_string("pooling"), "mean");
  EXPECT_EQ(json.at("class_token"), Json(false));
  EXPECT_EQ(json.at("norm_after_pooling"), Json(true));
  EXPECT_EQ(json.at("two_dimensional_positions"), Json(true));
}

TEST(VitPooling, without_a_class_token_states_are_those_of_the_patches) {
  nn::Parameters parameters(1);
  const auto model =
      make_model(Scope(parameters), with(small(), R"({"pooling": "mean", "class_token": false})"));
  const ImageModel& images = *model->as<ImageModel>();
  EXPECT_EQ(images.facts().tokens, 0);
  EXPECT_FALSE(images.facts().reads_token());
  const NumberedImages two({{0, {8, 8}}, {1, {8, 12}}});
  EXPECT_EQ(images.tokens(two.rows()), Segments::from_lengths(std::vector<int64_t>{4, 6}));
  const NoGrad off;
  EXPECT_EQ(model->hidden(two.rows(), {}).shape(), Shape({10, 16}));
  for (const auto& p : parameters.all()) {
    EXPECT_EQ(p->name().find("cls_token"), std::string::npos) << p->name();
  }
}

// Of a model without classes the pooler gives what would be classified.
TEST(VitPooling, mean_leaves_the_class_token_out) {
  nn::Parameters parameters(1);
  const auto model = make_model(
      Scope(parameters), with(small(), R"({"pooling": "mean", "architectures": ["ViTModel"]})"));
  const NumberedImages two({{0, {8, 8}}, {1, {8, 12}}});
  const NoGrad off;
  const auto out = model->forward(two.rows(), {});
  ASSERT_EQ(out.size(), 2u);
  ASSERT_EQ(out[1].name, "pooler_output");
  const std::vector<float> h = out[0].x.to_floats(), pooled = out[1].x.to_floats();
  ASSERT_EQ(pooled.size(), 2u * 16);
  const int64_t begins[] = {1, 5 + 1}, counts[] = {4, 6};
  for (int64_t i = 0; i < 2; ++i) {
    for (int64_t j = 0; j < 16; ++j) {
      double sum = 0;
      for (int64_t r = 0; r < counts[i]; ++r) sum += h[(begins[i] + r) * 16 + j];
      EXPECT_NEAR(pooled[i * 16 + j], sum / static_cast<double>(counts[i]), 1e-5);  // f32
    }
  }
}

// Nothing there reads a mean.
TEST(VitPooling, norm_behind_the_mean_is_no_part_of_a_backbone) {
  Json json = Json::parse(R"({"model_type": "captioner", "image_size": 8, "memory_size": 16,
      "position_embedding_type": "none"})");
  const auto norms = [&](const char* more) {
    json["backbone_config"] = with(small(), more);
    nn::Parameters parameters(1);
    (void)make_model(Scope(parameters), json);
    return std::ranges::count_if(
        parameters.all(), [](const auto& p) { return p->name().ends_with(".layernorm.weight"); });
  };
  EXPECT_EQ(norms(R"({"pooling": "mean"})"), 1);
  EXPECT_EQ(norms(R"({"pooling": "mean", "norm_after_pooling": true})"), 0);
}

TEST(VitTraining, gradients_of_means_and_positions_of_axes_are_the_same_when_recomputed) {
  const Json json = with(small(), R"({"pooling": "mean", "norm_after_pooling": true,
      "two_dimensional_positions": true, "drop_path_rate": 0.5, "hidden_dropout_prob": 0.2})");
  const NumberedImages images({{0, {8, 8}}, {1, {8, 12}}, {2, {8, 8}}});
  EXPECT_EQ(training_gradients(json, images, true), training_gradients(json, images, false));
}

TEST(Registry, heads_for_images_have_their_types) {
  EXPECT_EQ(default_model_type(Head::image_classes), "vit");
  EXPECT_EQ(class_of_head(Head::image_classes), "ViTForImageClassification");
  EXPECT_EQ(class_of_head(Head::distilled_classes), "DeiTForImageClassificationWithTeacher");
}

TEST(DeitHeads, classes_are_the_mean_of_the_two) {
  nn::Parameters parameters(1);
  const auto model = make_model(Scope(parameters), small("deit"));
  const NoGrad off;
  const auto out = model->forward(NumberedImages({{0, {8, 8}}, {1, {8, 12}}}).rows(), {});
  ASSERT_EQ(out.size(), 3u);
  EXPECT_EQ(out[2].name, "distillation_logits");
  const std::vector<float> mean = out[0].x.to_floats();
  const std::vector<float> own = out[1].x.to_floats(), distilled = out[2].x.to_floats();
  EXPECT_NE(own, distilled);
  for (size_t i = 0; i < mean.size(); ++i) EXPECT_EQ(mean[i], (own[i] + distilled[i]) / 2);
}

TEST(VitTraining, masks_belong_to_images_not_to_batches) {
  Json json = small();
  json["drop_path_rate"] = 0.5, json["hidden_dropout_prob"] = 0.2;
  json["attention_probs_dropout_prob"] = 0.3;
  nn::Parameters parameters(1);
  const auto model = make_model(Scope(parameters), json);
  const NoGrad off;
  const nn::Run run{.dropout = {.training = true, .seed = 3, .update = 5}};
  const std::pair<uint32_t, ImageSize> a{4, {8, 8}}, b{9, {12, 9}}, c{2, {8, 8}};
  const std::vector<float> abc = model->hidden(NumberedImages({a, b, c}).rows(), run).to_floats();
  const std::vector<float> cb = model->hidden(NumberedImages({c, b}).rows(), run).to_floats();
  EXPECT_EQ(part(abc, 5 * 16, 7 * 16), part(cb, 5 * 16, 7 * 16));
  EXPECT_EQ(part(abc, 12 * 16, 5 * 16), part(cb, 0, 5 * 16));
  const nn::Run later{.dropout = {.training = true, .seed = 3, .update = 6}};
  EXPECT_NE(model->hidden(NumberedImages({a, b, c}).rows(), later).to_floats(), abc);
}

// The stream between the layers, of each image.
std::vector<std::vector<float>> streams(const Model& model, const NumberedImages& images,
                                        const nn::Run& given) {
  std::vector<std::vector<float>> all;
  nn::Observer observer;
  observer.hidden = [&](const std::string&, const Tensor& x) { all.push_back(x.to_floats()); };
  nn::Run run = given;
  run.observer = &observer;
  const NoGrad off;
  model.hidden(images.rows(), run);
  return all;
}

// Each of the two sublayers of the last block is passed by with probability 1/2 on its own: a
// quarter of 400 images keep their state, with deviation sqrt(400 * 3/16) = 9. In the second of
// three blocks the probability is 1/4, and a sixteenth keeps it; in the first it is 0.
TEST(VitTraining, images_go_past_sublayers_as_often_as_said) {
  Json json = small();
  json["drop_path_rate"] = 0.5;
  nn::Parameters parameters(1);
  const auto model = make_model(Scope(parameters), json);
  std::vector<std::pair<uint32_t, ImageSize>> all;
  for (uint32_t i = 0; i < 400; ++i) all.push_back({i, {8, 8}});
  const NumberedImages images(all);
  const auto x = streams(*model, images, {.dropout = {.training = true, .seed = 1}});
  const auto same = [&](size_t layer) {
    int count = 0;
    for (int64_t i = 0; i < 400; ++i) {
      count += part(x[layer], i * 80, 80) == part(x[layer + 1], i * 80, 80) ? 1 : 0;
    }
    return count;
  };
  EXPECT_EQ(same(0), 0);
  EXPECT_NEAR(same(1), 400 / 16, 5 * std::sqrt(400 * 15 / 256.0));
  EXPECT_NEAR(same(2), 400 / 4, 5 * std::sqrt(400 * 3 / 16.0));
  const auto still = streams(*model, images, {});
  for (int64_t i = 0; i < 400; ++i) {
    ASSERT_NE(part(still[2], i * 80, 80), part(still[3], i * 80, 80)) << i;
  }
  EXPECT_EQ(still[1], x[1]) << "the first block passes nothing by";
}

TEST(VitTraining, gradients_with_stochastic_depth_are_the_same_when_layers_are_recomputed) {
  Json json = small();
  json["drop_path_rate"] = 0.5, json["hidden_dropout_prob"] = 0.2;
  const NumberedImages images({{0, {8, 8}}, {1, {8, 12}}, {2, {8, 8}}});
  EXPECT_EQ(training_gradients(json, images, true), training_gradients(json, images, false));
}

}  // namespace
}  // namespace heddle
