// Images prepared for a model against transformers and timm, and what their files must say.
#include "heddle/vision/image_processor.h"

#include <gtest/gtest.h>

#include "tests/base/temporary.h"
#include "tests/vision/drawn.h"

namespace heddle {
namespace {

using testing::crc_of;
using testing::noise;

ImageProcessor processor_of(const Json& c) {
  const Json* timm = c.find("timm");
  return timm ? ImageProcessor::of_timm(*timm, "timm")
              : ImageProcessor::of_hub(c.at("config"), "hub");
}

// As transformers lays them out: [3, height, width].
std::vector<float> pixel_values(const ImageProcessor& processor, const Image& image) {
  std::vector<float> rows(image.pixels.size()), planes;
  processor.normalize(image, rows.data());
  for (size_t c = 0; c < 3; ++c) {
    for (size_t i = c; i < rows.size(); i += 3) planes.push_back(rows[i]);
  }
  return planes;
}

TEST(ImageProcessor, sizes_bits_and_values_are_those_of_transformers_and_timm) {
  const Json cases = Json::load(testing::image_fixture("images.json"));
  ASSERT_EQ(cases.at("prepared").size(), 33U);
  for (const Json& c : cases.at("prepared").as_array()) {
    const std::vector<int64_t> from = c.at("from").as_ints(), to = c.at("to").as_ints();
    const ImageProcessor processor = processor_of(c);
    const Image image = processor.fit(noise(from[0], from[1], c.get_int("seed")));
    EXPECT_EQ(image.height, to[0]) << c.dump();
    EXPECT_EQ(image.width, to[1]) << c.dump();
    EXPECT_EQ(processor.fitted({from[0], from[1]}), image.size()) << c.dump();
    EXPECT_EQ(crc_of(image), c.get_int("crc")) << c.dump();
    const std::vector<float> values = pixel_values(processor, image);
    const Json::Array& expected = c.at("values").as_array();
    ASSERT_EQ(expected.size(), (values.size() + 96) / 97);
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(values[97 * i], expected[i].as_double(), 2e-6) << c.dump();
    }
  }
}

TEST(ImageProcessor, no_edge_becomes_nothing) {
  ImageProcessor p;
  p.do_resize = true, p.shortest_edge = 800, p.longest_edge = 1333;
  EXPECT_EQ(p.resized({20000, 1}), (ImageSize{1333, 1}));
  EXPECT_EQ(p.resized({1, 20000}), (ImageSize{1, 1333}));
  EXPECT_EQ(p.fit(Image(1, 20000)).size(), (ImageSize{1, 1333}));
}

TEST(ImageProcessor, what_a_crop_keeps_is_told_in_shares) {
  ImageProcessor p;
  p.do_resize = true, p.shortest_edge = 20;
  using Shares = std::array<double, 4>;
  EXPECT_EQ(p.kept({50, 100}), (Shares{0, 0, 1, 1}));
  p.do_center_crop = true, p.crop_size = {20, 20};
  EXPECT_EQ(p.kept({50, 100}), (Shares{0.25, 0, 0.75, 1}));
  p.crop_size = {30, 20};  // of 20 x 40: padded above and below
  EXPECT_EQ(p.kept({50, 100}), (Shares{0.25, -0.25, 0.75, 1.25}));
}

TEST(ImageProcessor, written_file_prepares_alike) {
  const Json cases = Json::load(testing::image_fixture("images.json"));
  for (const Json& c : cases.at("prepared").as_array()) {
    ImageProcessor first = processor_of(c);
    first.crops_as_torchvision = false;
    const ImageProcessor second = ImageProcessor::of_hub(first.to_json(), "written");
    for (const ImageSize size : {ImageSize{31, 17}, {8, 90}, {40, 40}}) {
      const Image image = noise(size.height, size.width, 3);
      EXPECT_EQ(first.fit(image), second.fit(image)) << first.to_json().dump();
      EXPECT_EQ(pixel_values(first, image), pixel_values(second, image));
    }
  }
}

TEST(ImageProcessor, folder_is_of_either_kind_or_refused) {
  TemporaryFolder folder;
  expect_error(ErrorKind::data, {folder.path(), "preprocessor_config.json", "pretrained_cfg"},
               [&] { ImageProcessor::of_folder(folder.path()); });
  folder.write("config.json", R"({"architecture": "x", "pretrained_cfg": {"input_size": [3, 8, 8],
    "interpolation": "bicubic", "crop_pct": 0.5, "mean": [0, 0, 0], "std": [1, 1, 1]}})");
  EXPECT_EQ(ImageProcessor::of_folder(folder.path()).shortest_edge, 16);
  folder.write("preprocessor_config.json", R"({"do_resize": false, "do_normalize": false})");
  EXPECT_FALSE(ImageProcessor::of_folder(folder.path()).do_resize);
}

TEST(ImageProcessor, what_a_file_lacks_or_cannot_mean_is_named) {
  const std::string normal =
      R"("do_normalize": true, "image_mean": [0, 0, 0], "image_std": [1, 1, 1])";
  const auto refuse = [](const std::string& text, const std::vector<std::string>& words) {
    expect_error(ErrorKind::data, words,
                 [&] { ImageProcessor::of_hub(Json::parse(text), "p.json"); });
  };
  refuse("{" + normal + "}", {"p.json", "do_resize"});
  refuse(R"({"do_resize": true, "resample": 3, )" + normal + "}", {"'size'"});
  refuse(R"({"do_resize": true, "size": 8, )" + normal + "}", {"'resample'"});
  refuse(R"({"do_resize": true, "size": 8, "resample": 1, )" + normal + "}", {"'resample' is 1"});
  refuse(R"({"do_resize": true, "size": 0, "resample": 2, )" + normal + "}", {"'size' is 0"});
  refuse(R"({"do_resize": true, "size": {"height": 4}, "resample": 2, )" + normal + "}",
         {"'width'"});
  refuse(R"({"do_resize": false, "do_normalize": true, "image_mean": [0, 0]})",
         {"'image_mean'", "2 numbers"});
  refuse(R"({"do_resize": false, "do_normalize": true, "image_mean": 0, "image_std": 0})",
         {"'image_std'", "above 0"});
  refuse(R"({"do_resize": false, "do_normalize": false, "rescale_offset": true})",
         {"'rescale_offset' is true"});
}

// As transformers' fast processors write what is not set.
TEST(ImageProcessor, nulls_say_nothing) {
  const ImageProcessor p = ImageProcessor::of_hub(
      Json::parse(R"({"image_processor_type": "ViTImageProcessorFast", "crop_size": null,
          "do_center_crop": null, "do_convert_rgb": null, "do_resize": true, "resample": 2,
          "size": {"height": 8, "width": 6, "shortest_edge": null}, "do_rescale": null,
          "rescale_factor": null, "do_normalize": true, "image_mean": [0, 0, 0],
          "image_std": [1, 1, 1]})"),
      "p.json");
  EXPECT_FALSE(p.do_center_crop);
  EXPECT_EQ(p.fitted({20, 30}), (ImageSize{8, 6}));
  EXPECT_TRUE(p.do_rescale);
  EXPECT_EQ(p.rescale_factor, 1.0 / 255);
  // From 384 pixels on nothing is cut, and no share of a cut is needed.
  const ImageProcessor large = ImageProcessor::of_hub(
      Json::parse(R"({"image_processor_type": "ConvNextImageProcessor", "crop_pct": null,
          "do_resize": true, "resample": 3, "size": {"shortest_edge": 384},
          "do_normalize": false})"),
      "p.json");
  EXPECT_EQ(large.fitted({20, 30}), (ImageSize{384, 384}));
}

// Of a class that gives the same keys another meaning: what Levit cuts is another part.
TEST(ImageProcessor, class_that_prepares_otherwise_is_refused_by_name) {
  const auto edge_of = [](const std::string& type) {
    return ImageProcessor::of_hub(
               Json::parse(R"({"do_resize": true, "size": 32, "resample": 3, "crop_pct": 0.5,
                               "do_normalize": false, "image_processor_type": ")" +
                           type + "\"}"),
               "p.json")
        .shortest_edge;
  };
  for (const char* name : {"LevitImageProcessor", "PoolFormerFeatureExtractor", "Owlv2Processor",
                           "MobileNetV1ImageProcessorFast", "EfficientNetImageProcessor", ""}) {
    expect_error(ErrorKind::data, {"p.json", fmt::format("prepared by {};", name), "ViT"},
                 [&] { edge_of(name); });
  }
  EXPECT_EQ(edge_of("ViTImageProcessorFast"), 0);
  EXPECT_EQ(edge_of("CLIPImageProcessor"), 32);
  EXPECT_EQ(edge_of("ConvNextFeatureExtractor"), 64);
}

}  // namespace
}  // namespace heddle
