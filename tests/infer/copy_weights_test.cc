// Weights that go from a model to one of images of another size.
#include <gtest/gtest.h>

#include "heddle/base/json/json.h"
#include "heddle/infer/loading/adapter.h"
#include "heddle/models/registry.h"
#include "tests/parity/image_parity.h"

namespace heddle {
namespace {

struct Case {
  const char *name, *table;
  int64_t tokens;
};

class PositionsOfAnotherSize : public ::testing::TestWithParam<Case> {
 protected:
  static std::vector<float> logits(const LoadedModel& model, const Pixels& pixels) {
    Images images;
    for (int64_t i = 0; i < pixels.count; ++i) images.add(pixels, i);
    return outputs(*model.model, images).at("logits");
  }
};

// pixel_values.1 are of another size than the model's, and transformers was told to interpolate.
TEST_P(PositionsOfAnotherSize, saved_model_of_that_size_gives_the_same_bits_without_interpolation) {
  ImageFixture fixture(std::string("vision/") + GetParam().name);
  const LoadedModel model = fixture.load();
  const Pixels& pixels = fixture.pixels.at(1);
  Json config = Json::parse(fixture.file.metadata().at("config"));
  config["image_size"] = Json::Array{pixels.size.height, pixels.size.width};
  nn::Parameters parameters(7);
  const auto larger = make_model(nn::Scope(parameters), config, "config.json");
  EXPECT_TRUE(copy_weights(model.parameters, *model.model, parameters, *larger).alone.empty());
  const TemporaryFolder folder;
  save_model(folder.path(), *larger, parameters);

  const LoadedModel saved = load_model(folder.path());
  const ImageModel& images = *saved.model->as<ImageModel>();
  EXPECT_EQ(images.facts().image_size, pixels.size);
  EXPECT_EQ(images.grid_positions()->grid(), images.grid(pixels.size));
  const ImageSize grid = images.grid(pixels.size);
  ASSERT_NE(grid, model.model->as<ImageModel>()->grid_positions()->grid());
  const int64_t width =
      floats(fixture.file, GetParam().table).size() / fixture.file.info(GetParam().table).shape[1];
  const std::vector<int64_t> rows = {1, GetParam().tokens + grid.height * grid.width, width};
  EXPECT_EQ(SafetensorsFile::open(folder / "model.safetensors").info(GetParam().table).shape, rows);
  EXPECT_EQ(Json::load(folder / "config.json").at("image_size"), config.at("image_size"));

  EXPECT_EQ(logits(saved, pixels), logits(model, pixels));
  Comparison comparison(fixture.file, 1e-5);  // f32: see vision_parity_test.cc
  comparison.add("out.1.logits", logits(saved, pixels));
  EXPECT_EQ(comparison.report(), "");
}

INSTANTIATE_TEST_SUITE_P(Fixtures, PositionsOfAnotherSize,
                         ::testing::Values(Case{"vit", "vit.embeddings.position_embeddings", 1},
                                           Case{"deit", "deit.embeddings.position_embeddings", 2}),
                         [](const auto& one) { return std::string(one.param.name); });

// Rows of classes go by their names.
TEST(CopyWeights, classes_of_the_same_names_are_put_in_order_and_others_begin_anew) {
  const auto config = [](const char* labels) {
    Json json = Json::parse(R"({"model_type": "bert", "vocab_size": 20, "hidden_size": 8,
        "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8,
        "architectures": ["BertForSequenceClassification"]})");
    json["id2label"] = Json::parse(labels);
    return json;
  };
  nn::Parameters from(3);
  const auto model = make_model(nn::Scope(from), config(R"({"0": "World", "1": "Sports"})"));
  const auto values = [](const nn::Parameters& parameters, const std::string& name) {
    for (const auto& p : parameters.all()) {
      if (p->name() == name) return p->value().to_floats();
    }
    return std::vector<float>();
  };
  const std::vector<float> old = values(from, "classifier.weight");
  ASSERT_EQ(old.size(), 16u);

  nn::Parameters turned(4);
  const auto other = make_model(nn::Scope(turned), config(R"({"0": "Sports", "1": "World"})"));
  EXPECT_TRUE(copy_weights(from, *model, turned, *other).alone.empty());
  const std::vector<float> now = values(turned, "classifier.weight");
  EXPECT_TRUE(std::equal(now.begin(), now.begin() + 8, old.begin() + 8));
  EXPECT_TRUE(std::equal(now.begin() + 8, now.end(), old.begin()));

  nn::Parameters fresh(5);
  const auto renamed = make_model(nn::Scope(fresh), config(R"({"0": "good", "1": "bad"})"));
  const std::vector<float> begun = values(fresh, "classifier.weight");
  EXPECT_EQ(copy_weights(from, *model, fresh, *renamed).alone,
            (std::vector<std::string>{"classifier.weight", "classifier.bias"}));
  EXPECT_EQ(values(fresh, "classifier.weight"), begun);

  nn::Parameters numbered(6);
  const auto plain = make_model(nn::Scope(numbered), config(R"({"0": "LABEL_0", "1": "LABEL_1"})"));
  EXPECT_TRUE(copy_weights(from, *model, numbered, *plain).alone.empty());
  EXPECT_EQ(values(numbered, "classifier.weight"), old);
}

// All of CCT stands below "classifier", and as wide as there are classes.
TEST(CopyWeights, only_rows_of_classes_are_put_in_order) {
  const auto config = [](const char* labels) {
    Json json = Json::parse(R"({"model_type": "cct", "hidden_size": 4, "num_hidden_layers": 1,
        "num_attention_heads": 2, "intermediate_size": 4, "image_size": 16})");
    json["id2label"] = Json::parse(labels);
    return json;
  };
  nn::Parameters from(3), to(4);
  const auto model =
      make_model(nn::Scope(from), config(R"({"0": "a", "1": "b", "2": "c", "3": "d"})"));
  const auto other =
      make_model(nn::Scope(to), config(R"({"0": "b", "1": "a", "2": "c", "3": "d"})"));
  EXPECT_TRUE(copy_weights(from, *model, to, *other).alone.empty());
  int same = 0, moved = 0;
  for (size_t i = 0; i < from.all().size(); ++i) {
    const std::vector<float> a = from.all()[i]->value().to_floats(),
                             b = to.all()[i]->value().to_floats();
    const std::string& name = to.all()[i]->name();
    if (name.find("classifier.fc.") == name.npos) {
      EXPECT_EQ(a, b) << name;
      ++same;
    } else if (name.ends_with("weight")) {
      EXPECT_TRUE(std::equal(a.begin(), a.begin() + 4, b.begin() + 4)) << name;
      EXPECT_TRUE(std::equal(a.begin() + 8, a.end(), b.begin() + 8)) << name;
      ++moved;
    }
  }
  EXPECT_EQ(moved, 1);
  EXPECT_GT(same, 10);
}

TEST(CopyWeights, what_the_smaller_model_has_no_place_for_is_named) {
  nn::Parameters from(3), to(4);
  const char* const config = R"({"model_type": "bert", "vocab_size": 20, "hidden_size": 8,
      "num_attention_heads": 2, "intermediate_size": 8, "num_hidden_layers": )";
  const auto large = make_model(nn::Scope(from), Json::parse(std::string(config) + "2}"));
  const auto small = make_model(nn::Scope(to), Json::parse(std::string(config) + "1}"));
  const CopiedWeights copied = copy_weights(from, *large, to, *small);
  EXPECT_TRUE(copied.alone.empty());
  EXPECT_FALSE(copied.left_out.empty());
  for (const std::string& name : copied.left_out) {
    EXPECT_NE(name.find("layer.1."), name.npos) << name;
  }
}

TEST(PositionsOfAxes, model_of_another_size_gives_the_same_bits_without_interpolation) {
  ImageFixture fixture("timm/vit_axes");
  const LoadedModel model = fixture.load();
  const Images images = fixture.batch(1);
  Json config = Json::parse(fixture.file.metadata().at("config"));
  config["image_size"] = Json::Array{images.sizes[0].height, images.sizes[0].width};
  nn::Parameters parameters(7);
  const auto larger = make_model(nn::Scope(parameters), config, "config.json");
  EXPECT_TRUE(copy_weights(model.parameters, *model.model, parameters, *larger).alone.empty());
  EXPECT_EQ(larger->as<ImageModel>()->grid_positions()->table().shape(), Shape({4 + 5, 12}));
  EXPECT_EQ(outputs(*larger, images), outputs(*model.model, images));
}

}  // namespace
}  // namespace heddle
