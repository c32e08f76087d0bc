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

// Rows of pixels of `batch` images, channels last, as maps.
std::vector<float> maps_of(const std::vector<float>& rows, int64_t batch, int64_t channels) {
  const int64_t area = std::ssize(rows) / batch / channels;
  std::vector<float> maps;
  for (int64_t i = 0; i < batch * channels * area; ++i) {
    const int64_t image = i / (channels * area), channel = i / area % channels, pixel = i % area;
    maps.push_back(rows[static_cast<size_t>((image * area + pixel) * channels + channel)]);
  }
  return maps;
}

// The fixture has the pixels of transformers' maps as rows.
TEST(ResnetForward, states_are_maps_as_in_transformers) {
  const TempDir folder;
  const std::string inputs = (folder / "in.safetensors").string(),
                    outputs = (folder / "out.safetensors").string(),
                    model = (folder / "model").string(), name = "../resnet/states";
  write_vision_model(model, name);
  const SafetensorsFile file = vision_fixture(name);
  const std::vector<std::pair<std::vector<int64_t>, std::vector<std::vector<int64_t>>>> all = {
      {{2, 3, 24, 24}, {{2, 6, 6, 6}, {2, 6, 6, 6}, {2, 8, 3, 3}, {2, 12, 2, 2}}},
      {{1, 3, 41, 19}, {{1, 6, 11, 5}, {1, 6, 11, 5}, {1, 8, 6, 3}, {1, 12, 3, 2}}}};
  for (size_t k = 0; k < all.size(); ++k) {
    const auto& [images, shapes] = all[k];
    const std::vector<float> pixels = floats(file, fmt::format("pixel_values.{}", k));
    write_safetensors(inputs,
                      {{"pixel_values", DType::f32, images, std::as_bytes(std::span(pixels))}});
    const CliResult result =
        run_heddle({"forward", model, "--input", inputs, "--output", outputs, "--all"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const SafetensorsFile out = SafetensorsFile::open(outputs);
    const auto expect = [&](const std::string& tensor, const std::string& rows,
                            const std::vector<int64_t>& shape) {
      ASSERT_EQ(out.info(tensor).shape, shape) << tensor;
      const std::vector<float> found = floats(out, tensor),
                               wanted = maps_of(floats(file, fmt::format("out.{}.{}", k, rows)),
                                                shape[0], shape[1]);
      for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-4) << tensor;
    };
    for (size_t i = 0; i < shapes.size(); ++i) {
      const std::string state = fmt::format("hidden_states.{}", i);
      expect(state, state, shapes[i]);
    }
    expect("last_hidden_state", "hidden_states.3", shapes.back());
    expect("pooler_output", "pooler_output", {images[0], 12, 1, 1});
  }
}

// All images of a fixture in one batch, each padded at its right and below with numbers that would
// be seen.
class PaddedForwardOf : public ::testing::TestWithParam<const char*> {
 protected:
  using Sizes = std::vector<int64_t>;

  PaddedForwardOf() {
    write_vision_model(model, GetParam());
    for (int k = 0; file.find(fmt::format("pixel_values.{}", k)) != nullptr; ++k) {
      const Sizes& s = file.info(fmt::format("pixel_values.{}", k)).shape;
      groups.push_back(s);
      batch += s[0], height = std::max(height, s[2]), width = std::max(width, s[3]);
    }
    padded.assign(static_cast<size_t>(batch * 3 * height * width), 7.0f);
    mask.assign(static_cast<size_t>(batch * height * width), 0);
  }
  void lay_images() {
    int64_t image = 0;
    for (size_t k = 0; k < groups.size(); ++k) {
      const Sizes& s = groups[k];
      const std::vector<float> values = floats(file, fmt::format("pixel_values.{}", k));
      for (int64_t i = 0; i < s[0]; ++i, ++image) {
        for (int64_t p = 0; p < s[2] * s[3]; ++p) {
          const int64_t at = p / s[3] * width + p % s[3];
          mask[image * height * width + at] = 1;
          for (int64_t c = 0; c < 3; ++c) {
            padded[(image * 3 + c) * height * width + at] = values[(i * 3 + c) * s[2] * s[3] + p];
          }
        }
      }
    }
  }
  SafetensorsFile run_padded() {
    write_safetensors(
        inputs,
        {{"pixel_values", DType::f32, {batch, 3, height, width}, std::as_bytes(std::span(padded))},
         {"pixel_mask", DType::i64, {batch, height, width}, std::as_bytes(std::span(mask))}});
    const CliResult result =
        run_heddle({"forward", model, "--input", inputs, "--output", outputs, "--all"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.err, "");
    return SafetensorsFile::open(outputs);
  }
  // Of image `image` of `all`, which has a block of its own of each, what `shape` holds of it.
  std::vector<float> block(const std::vector<float>& all, const Sizes& of_all, int64_t image,
                           const Sizes& shape) const {
    std::vector<float> values;
    const auto take = [&](const auto& self, size_t axis, int64_t row) -> void {
      if (axis == shape.size()) return values.push_back(all[static_cast<size_t>(row)]);
      const int64_t rows = axis == 0 ? of_all[0] / batch : of_all[axis];
      for (int64_t i = 0; i < shape[axis]; ++i) self(self, axis + 1, row * rows + i);
    };
    take(take, 0, image);
    return values;
  }

  const SafetensorsFile file = vision_fixture(GetParam());
  const TempDir folder;
  const std::string model = (folder / "model").string(),
                    inputs = (folder / "in.safetensors").string(),
                    outputs = (folder / "out.safetensors").string();
  std::vector<Sizes> groups;
  int64_t batch = 0, height = 0, width = 0;
  std::vector<float> padded;
  std::vector<int64_t> mask;
};

TEST_P(PaddedForwardOf, each_image_gives_what_transformers_makes_of_it_alone_and_then_zeros) {
  lay_images();
  const SafetensorsFile out = run_padded();
  Comparison comparison(file, 1e-4);  // see detr_parity_test.cc
  std::set<std::string> expected = named(file, {"out."});
  std::erase_if(expected,
                [](const std::string& name) { return name.ends_with("last_hidden_state"); });
  for (const std::string& tensor : out.names()) {
    const std::vector<float> all = floats(out, tensor);
    int64_t image = 0, filled = 0;
    for (size_t k = 0; k < groups.size(); ++k) {
      const std::string there = fmt::format("out.{}.{}", k, tensor);
      ASSERT_NE(file.find(there), nullptr) << there;
      Sizes shape = file.info(there).shape;
      shape[0] /= groups[k][0];
      std::vector<float> own;
      for (int64_t i = 0; i < groups[k][0]; ++i, ++image) {
        const std::vector<float> more = block(all, out.info(tensor).shape, image, shape);
        own.insert(own.end(), more.begin(), more.end());
      }
      filled += std::ranges::count_if(own, [](float x) { return x != 0; });
      comparison.add(there, own);
    }
    EXPECT_EQ(std::ranges::count_if(all, [](float x) { return x != 0; }), filled) << tensor;
  }
  EXPECT_EQ(comparison.report(), "");
  EXPECT_EQ(comparison.names(), expected);
}

INSTANTIATE_TEST_SUITE_P(Models, PaddedForwardOf, ::testing::Values("vit", "swin", "detr"));

TEST_F(ImageForward, padding_that_all_images_share_is_cut_off) {
  std::vector<float> whole(3 * 12 * 12), padded(3 * 13 * 15, -1);
  std::vector<uint8_t> mask(13 * 15);
  for (size_t i = 0; i < whole.size(); ++i) {
    const size_t row = i / 12 % 12, at = row * 15 + i % 12;
    padded[i / 144 * 13 * 15 + at] = whole[i] = 0.01f * static_cast<float>(i % 97);
    mask[at] = 1;
  }
  write_pixels({1, 3, 12, 12}, whole);
  ASSERT_EQ(forward({"--input", inputs}).exit_code, 0);
  const std::vector<float> logits = floats(SafetensorsFile::open(outputs), "logits");
  write_safetensors(inputs,
                    {{"pixel_values", DType::f32, {1, 3, 13, 15}, std::as_bytes(std::span(padded))},
                     {"pixel_mask", DType::boolean, {1, 13, 15}, std::as_bytes(std::span(mask))}});
  ASSERT_EQ(forward({"--input", inputs}).exit_code, 0);
  EXPECT_EQ(floats(SafetensorsFile::open(outputs), "logits"), logits);
}

TEST_F(ImageForward, mask_that_is_no_rectangle_at_the_top_left_is_refused) {
  const std::vector<float> pixels(2 * 3 * 4 * 4);
  const auto refused = [&](const std::vector<int64_t>& shape, const std::vector<int64_t>& mask,
                           const std::string& part) {
    write_safetensors(inputs,
                      {{"pixel_values", DType::f32, {2, 3, 4, 4}, std::as_bytes(std::span(pixels))},
                       {"pixel_mask", DType::i64, shape, std::as_bytes(std::span(mask))}});
    const CliResult result = forward({"--input", inputs});
    EXPECT_EQ(result.exit_code, 3) << result.err;
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
    EXPECT_FALSE(std::filesystem::exists(outputs));
  };
  const std::vector<int64_t> ones(32, 1);
  const auto with = [&](int64_t at, int64_t value) {
    std::vector<int64_t> mask = ones;
    mask[static_cast<size_t>(at)] = value;
    return mask;
  };
  refused({2, 16}, ones, "pixel_mask has shape [2, 16], but pixel_values [2, 3, 4, 4]");
  refused({1, 4, 4}, std::vector<int64_t>(16, 1), "[2, 4, 4] is needed");
  refused({2, 4, 4}, with(16 + 5, 0), "pixel_mask[1, 1, 1] is 0; ones must be a rectangle");
  refused({2, 4, 4}, with(16 + 5, 2), "pixel_mask[1, 1, 1] is 2");
  refused({2, 4, 4}, with(16, 0), "pixel_mask[1, 0, 0] is 0");
  std::vector<int64_t> below = std::vector<int64_t>(32, 0);
  below[0] = below[10] = below[16] = 1;
  refused({2, 4, 4}, below, "pixel_mask[0, 2, 2] is 1");
}

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
