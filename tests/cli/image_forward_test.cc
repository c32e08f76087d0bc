// heddle forward over images: transformers' tensors from its weights, image files, and bad input.
#include <gtest/gtest.h>

#include "heddle/base/json/json.h"
#include "tests/cli/model_fixture.h"
#include "tests/cli/vision_model.h"

namespace heddle::testing {
namespace {

class ImageForward : public FolderFixture<write_vit> {
 protected:
  TempDir folder;
  const std::string inputs = (folder / "in.safetensors").string(),
                    outputs = (folder / "out.safetensors").string();

  CliResult forward(std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"forward", model(), "--output", outputs});
    return run_heddle(flags);
  }
  void write_pixels(const std::vector<int64_t>& shape, const std::vector<float>& values,
                    const std::string& name = "pixel_values") {
    write_safetensors(inputs, {{name, DType::f32, shape, std::as_bytes(std::span(values))}});
  }
};

class ImageForwardOf : public ::testing::TestWithParam<const char*> {};

TEST_P(ImageForwardOf, all_tensors_are_those_of_transformers_at_every_size) {
  const TempDir folder;
  const std::string inputs = (folder / "in.safetensors").string(),
                    outputs = (folder / "out.safetensors").string(),
                    model = (folder / "model").string();
  write_vision_model(model, GetParam());
  const SafetensorsFile file = vision_fixture(GetParam());
  for (int k = 0; file.find(fmt::format("pixel_values.{}", k)) != nullptr; ++k) {
    const std::string name = fmt::format("pixel_values.{}", k), there = fmt::format("out.{}.", k);
    const std::vector<float> pixels = floats(file, name);
    write_safetensors(inputs, {{"pixel_values", DType::f32, file.info(name).shape,
                                std::as_bytes(std::span(pixels))}});
    const CliResult result =
        run_heddle({"forward", model, "--input", inputs, "--output", outputs, "--all"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.err, "");
    const SafetensorsFile out = SafetensorsFile::open(outputs);
    Comparison comparison(file, 1e-5);  // f32: see image_parity_test.cc
    for (const std::string& tensor : out.names()) {
      EXPECT_EQ(out.info(tensor).shape, file.info(there + tensor).shape) << tensor;
      comparison.add(there + tensor, floats(out, tensor));
    }
    EXPECT_EQ(comparison.report(), "");
    EXPECT_EQ(comparison.names(), named(file, {there}));
  }
}

INSTANTIATE_TEST_SUITE_P(Models, ImageForwardOf, ::testing::Values("vit", "deit", "swin"));

TEST_F(ImageForward, image_files_are_prepared_and_what_the_model_read_is_given_too) {
  const std::string image = fixture_image("rgb.png");
  ASSERT_EQ(forward({image, image}).exit_code, 0);
  const SafetensorsFile first = SafetensorsFile::open(outputs);
  const std::vector<float> logits = floats(first, "logits"), pixels = floats(first, "pixel_values");
  EXPECT_EQ(first.info("pixel_values").shape, (std::vector<int64_t>{2, 3, 12, 12}));
  EXPECT_EQ(first.names().size(), 2u);  // without --all
  EXPECT_TRUE(std::equal(logits.begin(), logits.begin() + 5, logits.begin() + 5));
  write_pixels({2, 3, 12, 12}, pixels);
  ASSERT_EQ(forward({"--input", inputs}).exit_code, 0);
  EXPECT_EQ(floats(SafetensorsFile::open(outputs), "logits"), logits);
}

TEST_F(ImageForward, bad_input_is_refused_with_what_is_needed) {
  const auto refused = [&](const std::vector<std::string>& flags, int code,
                           const std::string& part) {
    const CliResult result = forward(flags);
    EXPECT_EQ(result.exit_code, code) << result.err;
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
    EXPECT_FALSE(std::filesystem::exists(outputs));
  };
  refused({}, 2, "give either --input");
  refused({fixture_image("rgb.png"), "--input", inputs}, 2, "give either --input");
  refused({(folder / "gone.png").string()}, 3, "gone.png");
  refused({fixture_image("vast.png.bad")}, 3, "vast.png.bad");
  write_pixels({1, 12, 12}, std::vector<float>(144));
  refused({"--input", inputs}, 3, "has shape [1, 12, 12]");
  write_pixels({1, 1, 12, 12}, std::vector<float>(144));
  refused({"--input", inputs}, 3, "has 1 channels; the model takes 3");
  write_pixels({1, 3, 2, 2}, std::vector<float>(12));
  refused({"--input", inputs}, 3, "holds no patch");
  write_pixels({1, 3, 0, 12}, {});
  refused({"--input", inputs}, 3, "none of them 0");
  write_pixels({1, 3, 12, 12}, std::vector<float>(432), "input_ids");
  refused({"--input", inputs}, 3, "there is no tensor pixel_values");
}

}  // namespace
}  // namespace heddle::testing
