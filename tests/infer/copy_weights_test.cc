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
  EXPECT_TRUE(copy_weights(model.parameters, *model.model, parameters, *larger).empty());
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

TEST(PositionsOfAxes, model_of_another_size_gives_the_same_bits_without_interpolation) {
  ImageFixture fixture("timm/vit_axes");
  const LoadedModel model = fixture.load();
  const Images images = fixture.batch(1);
  Json config = Json::parse(fixture.file.metadata().at("config"));
  config["image_size"] = Json::Array{images.sizes[0].height, images.sizes[0].width};
  nn::Parameters parameters(7);
  const auto larger = make_model(nn::Scope(parameters), config, "config.json");
  EXPECT_TRUE(copy_weights(model.parameters, *model.model, parameters, *larger).empty());
  EXPECT_EQ(larger->as<ImageModel>()->grid_positions()->table().shape(), Shape({4 + 5, 12}));
  EXPECT_EQ(outputs(*larger, images), outputs(*model.model, images));
}

}  // namespace
}  // namespace heddle
