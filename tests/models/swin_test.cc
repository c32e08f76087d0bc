// What Swin is beside its numbers (tests/parity): windows, maps of stages, configs, randomness in
// training.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "heddle/models/backbone.h"
#include "heddle/models/windows.h"
#include "heddle/ops/visibility.h"
#include "tests/base/temporary.h"
#include "tests/models/numbered_images.h"

namespace heddle {
namespace {

Json small() {
  return Json::parse(R"({"model_type": "swin", "image_size": 16, "patch_size": 2, "embed_dim": 8,
      "depths": [2, 2], "num_heads": [1, 2], "window_size": 3, "mlp_ratio": 2.0,
      "drop_path_rate": 0.0, "num_labels": 3, "initializer_range": 0.5})");
}

struct Made {
  nn::Parameters parameters{1};
  std::unique_ptr<Model> model;
  explicit Made(const Json& json) : model(make_model(Scope(parameters), json)) {}
  const Backbone& swin() const { return *model->as<Backbone>(); }
};

// What an observer is shown of a pass over images.
struct Seen {
  std::map<std::string, std::vector<float>> states;
  std::map<std::string, int64_t> windows;

  Seen(const Model& model, const NumberedImages& images) {
    const NoGrad off;
    nn::Observer observer;
    observer.hidden = [&](const std::string& name, const Tensor& x) {
      states[name] = x.to_floats();
    };
    observer.attention = [&](const nn::AttentionCall& call) {
      windows[call.name()] = call.queries().count();
    };
    model.hidden(images.rows(), {.observer = &observer});
  }
};

TEST(Swin, grid_is_that_of_the_last_stage_rounded_up) {
  const Made made(small());
  EXPECT_EQ(made.swin().grid({16, 16}), (ImageSize{4, 4}));
  EXPECT_EQ(made.swin().grid({21, 2}), (ImageSize{6, 1}));
  EXPECT_EQ(made.swin().channels(), (std::vector<int64_t>{8, 16}));
}

TEST(Swin, windows_are_those_that_the_observer_is_shown) {
  const Made made(small());
  const auto& swin = *made.model->as<WithWindows>();
  const NumberedImages image({{0, {16, 22}}});
  const Seen seen(*made.model, image);
  for (int64_t layer = 0; layer < 4; ++layer) {
    const ImageWindows w = swin.windows(layer, {16, 22});
    const int64_t count = w.windows.height * w.windows.width;
    EXPECT_EQ(count, seen.windows.at(fmt::format("attentions.{}", layer)));
    EXPECT_EQ(std::ssize(w.tokens), count * 9);
    EXPECT_EQ(w.tokens.size(), w.regions.size());
    std::vector<int> met(static_cast<size_t>(w.grid.height * w.grid.width));
    for (const int32_t token : w.tokens) {
      if (token >= 0) ++met[static_cast<size_t>(token)];
    }
    EXPECT_EQ(met, std::vector<int>(met.size(), 1)) << "each token stands in one window";
    EXPECT_EQ(w.shift, layer % 2);
    EXPECT_EQ(w.grid, layer < 2 ? (ImageSize{8, 11}) : (ImageSize{4, 6}));
  }
}

// 2 x 11 tokens in windows of 3 x 3: as if windows were 2 lines high.
TEST(Swin, window_that_is_higher_than_the_grid_has_rows_that_none_sees) {
  const Made made(small());
  const ImageWindows w = made.model->as<WithWindows>()->windows(1, {4, 22});
  EXPECT_EQ(w.shift, 0);
  for (size_t i = 0; i < w.regions.size(); ++i) {
    EXPECT_EQ(w.regions[i] == Visibility::kUnseen, i % 9 >= 6) << i;
  }
  const NoGrad off;
  for (const float x : made.model->hidden(NumberedImages({{0, {4, 22}}}).rows(), {}).to_floats()) {
    ASSERT_TRUE(std::isfinite(x));
  }
}

TEST(Swin, map_of_the_last_stage_is_the_state_before_the_norm) {
  const Made made(small());
  const NumberedImages images({{0, {16, 22}}, {1, {21, 16}}});
  const NoGrad off;
  const std::vector<FeatureMap> maps = made.swin().features(images.rows(), {});
  ASSERT_EQ(maps.size(), 2u);
  EXPECT_EQ(maps[0].sizes, (std::vector<ImageSize>{{8, 11}, {11, 8}}));
  EXPECT_EQ(maps[1].sizes, (std::vector<ImageSize>{{4, 6}, {6, 4}}));
  EXPECT_EQ(maps[0].x.shape(), Shape({8 * 11 * 2, 8}));
  EXPECT_EQ(maps[1].x.to_floats(), Seen(*made.model, images).states.at("hidden_states.2"));
}

TEST(SwinConfig, fields_that_do_not_fit_are_errors) {
  const auto refused = [](const char* key, const char* value, const char* text) {
    Json json = small();
    json[key] = Json::parse(value);
    expect_error(ErrorKind::data, {"config.json", text},
                 [&] { read_model_config(json, "config.json"); });
  };
  refused("depths", "[2, 2, 2]", "depths is of 3 stages, num_heads of 2");
  refused("depths", "[2, 0]", "depths");
  refused("num_heads", "[3, 2]", "stage 1");
  refused("window_size", "0", "window_size");
  refused("window_size", "65", "window_size");
  refused("embed_dim", "2097152", "embed_dim");
}

TEST(SwinConfig, other_names_of_its_sizes_are_passed_over_and_written) {
  Json json = small();
  json["hidden_size"] = 16, json["num_layers"] = 2, json["path_norm"] = true;
  json["out_features"] = Json::parse(R"(["stage2"])"), json["encoder_stride"] = 32;
  const auto config = read_model_config(json, "config.json");
  EXPECT_EQ(config->json().at("hidden_size").as_int(), 16);
  EXPECT_EQ(config->json().at("depths"), json.at("depths"));
}

TEST(SwinTraining, masks_belong_to_images_not_to_batches) {
  Json json = small();
  json["drop_path_rate"] = 0.5, json["hidden_dropout_prob"] = 0.2;
  json["attention_probs_dropout_prob"] = 0.3;
  const Made made(json);
  const NoGrad off;
  const nn::Run run{.dropout = {.training = true, .seed = 3, .update = 5}};
  const std::pair<uint32_t, ImageSize> a{4, {16, 16}}, b{9, {12, 19}}, c{2, {16, 16}};
  const auto hidden = [&](const std::vector<std::pair<uint32_t, ImageSize>>& images) {
    return made.model->hidden(NumberedImages(images).rows(), run).to_floats();
  };
  const std::vector<float> abc = hidden({a, b, c}), cb = hidden({c, b});
  const auto c_of_abc = abc.end() - 16 * 16;
  EXPECT_EQ(std::vector<float>(c_of_abc, abc.end()),
            std::vector<float>(cb.begin(), cb.begin() + 16 * 16));
  EXPECT_EQ(std::vector<float>(abc.begin() + 16 * 16, c_of_abc),
            std::vector<float>(cb.begin() + 16 * 16, cb.end()));
}

TEST(SwinTraining, gradients_are_the_same_when_blocks_are_recomputed) {
  Json json = small();
  json["drop_path_rate"] = 0.5, json["attention_probs_dropout_prob"] = 0.2;
  const NumberedImages images({{0, {16, 16}}, {1, {16, 12}}, {2, {7, 16}}});
  EXPECT_EQ(training_gradients(json, images, true), training_gradients(json, images, false));
}

}  // namespace
}  // namespace heddle
