// Captioners: how far a cell sees, what stands of patches, where cells are told apart.
#include <gtest/gtest.h>

#include <algorithm>

#include "heddle/models/captioner.h"
#include "heddle/models/registry.h"
#include "tests/base/temporary.h"
#include "tests/models/numbered_images.h"

namespace heddle {
namespace {

struct MadeCaptioner {
  nn::Parameters parameters{3};
  std::unique_ptr<Model> made;
  const Captioner* model;

  explicit MadeCaptioner(const std::string& more) {
    made = make_model(nn::Scope(parameters), Json::parse(R"({"model_type": "captioner",
        "vocab_size": 20, "embedding_size": 12, "hidden_size": 16)" +
                                                         more + "}"));
    model = made->as<Captioner>();
  }
  std::vector<float> memory(const nn::ImageRows& images) const {
    const NoGrad off;
    return model->encode(images, {}).to_floats();
  }
};

// The default but for its norms, which are over all of an image.
constexpr const char* kWithoutNorms =
    R"(, "backbone_config": {"model_type": "resnet", "stem": "cifar", "downsample": "pool",
        "layer_type": "plain", "norm": "frozen_batch", "embedding_size": 8,
        "hidden_sizes": [8, 8, 8], "depths": [0, 0, 0]})";

TEST(Captioner, cells_of_the_default_grid_see_24_pixels) {
  const MadeCaptioner captioner(kWithoutNorms);
  ASSERT_EQ(captioner.model->grid({64, 64}), (ImageSize{8, 8}));
  NumberedImages images({{0, {64, 64}}});
  const std::vector<float> before = captioner.memory(images.rows());
  const auto width = static_cast<int64_t>(before.size()) / 64;
  // Cell 3 begins at pixel 24; it is to see 16 to 39, 8 more than its own on either side.
  std::array<int, 64> is_seen = {};
  for (int64_t pixel = 0; pixel < 64; ++pixel) {
    NumberedImages other = images;
    for (int64_t row = 0; row < 64;
         ++row) {  // all of a column, by a lot: pools pass on what is most
      for (int64_t c = 0; c < 3; ++c) {
        other.x[static_cast<size_t>((row * 64 + pixel) * 3 + c)] += c == 0 ? 40.0f : -30.0f;
      }
    }
    const std::vector<float> after = captioner.memory(other.rows());
    for (int64_t row = 0; row < 8; ++row) {
      const int64_t at = (row * 8 + 3) * width;
      if (!std::equal(before.begin() + at, before.begin() + at + width, after.begin() + at)) {
        is_seen[static_cast<size_t>(pixel)] = 1;
      }
    }
  }
  for (int64_t pixel = 0; pixel < 64; ++pixel) {
    EXPECT_EQ(is_seen[static_cast<size_t>(pixel)], pixel >= 16 && pixel < 40 ? 1 : 0) << pixel;
  }
}

TEST(Captioner, default_network_is_that_grid) {
  const MadeCaptioner captioner("");
  EXPECT_EQ(captioner.model->grid({64, 64}), (ImageSize{8, 8}));
  EXPECT_EQ(captioner.model->grid({96, 64}), (ImageSize{12, 8}));
}

// A blank image has the same features everywhere but at its border.
TEST(Captioner, positions_tell_cells_of_a_blank_image_apart) {
  for (const char* kind : {"sine", "learned", "none"}) {
    const MadeCaptioner captioner(std::string(kWithoutNorms) + R"(, "position_embedding_type": ")" +
                                  kind + "\"");
    NumberedImages images({{0, {64, 64}}});
    std::ranges::fill(images.x, 0.5f);
    const std::vector<float> memory = captioner.memory(images.rows());
    const auto width = static_cast<int64_t>(memory.size()) / 64;
    const auto cell = [&](int64_t i) {
      return std::vector(memory.begin() + i * width, memory.begin() + (i + 1) * width);
    };
    EXPECT_EQ(cell(3 * 8 + 3) == cell(3 * 8 + 4), std::string(kind) == "none") << kind;
    EXPECT_EQ(cell(3 * 8 + 3) == cell(4 * 8 + 3), std::string(kind) == "none") << kind;
  }
}

TEST(Captioner, states_of_patches_are_the_memory_without_class_tokens) {
  const MadeCaptioner captioner(R"(, "position_embedding_type": "none", "memory_size": 16,
      "image_size": 16, "backbone_config": {"model_type": "vit", "image_size": 16, "patch_size": 4,
      "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
      "intermediate_size": 24})");
  const NumberedImages images({{0, {16, 16}}, {1, {16, 16}}});
  const nn::ImageRows rows = images.rows();
  const Segments cells = captioner.model->memory_segments(rows);
  EXPECT_EQ(cells.count(), 2);
  EXPECT_EQ(cells.length(1), 16);
  EXPECT_EQ(captioner.memory(rows).size(), 2u * 16 * 16);
  // An image has the same memory beside others.
  const std::vector<float> both = captioner.memory(rows);
  const NumberedImages alone({{1, {16, 16}}});
  EXPECT_TRUE(
      std::ranges::equal(captioner.memory(alone.rows()), std::span(both).subspan(both.size() / 2)));
}

TEST(Captioner, an_earlier_stage_gives_its_own_grid) {
  const MadeCaptioner captioner(R"(, "backbone_config": {"model_type": "resnet", "stem": "cifar",
      "norm": "group", "norm_groups": 2, "layer_type": "basic", "embedding_size": 8,
      "hidden_sizes": [8, 8, 16], "depths": [1, 1, 1], "out_features": ["stage2"]})");
  EXPECT_EQ(captioner.model->grid({32, 48}), (ImageSize{16, 24}));
  const NumberedImages images({{0, {32, 48}}});
  EXPECT_EQ(captioner.model->memory_segments(images.rows()).rows(), 16 * 24);
  EXPECT_EQ(captioner.memory(images.rows()).size(), 16u * 24 * 128);
}

TEST(Captioner, configs_that_do_not_fit_are_refused) {
  expect_error(ErrorKind::data, {"memory_size is 6", "4 divides"},
               [] { MadeCaptioner(R"(, "memory_size": 6)"); });
  expect_error(ErrorKind::data, {"attention_size is 4, but there is no attention"},
               [] { MadeCaptioner(R"(, "attention_scoring": "none", "attention_size": 4)"); });
  expect_error(ErrorKind::data, {"special id 3 is not below vocab_size 3"}, [] {
    nn::Parameters parameters(1);
    make_model(nn::Scope(parameters),
               Json::parse(R"({"model_type": "captioner", "vocab_size": 3})"));
  });
  expect_error(ErrorKind::data, {"reads images"},
               [] { MadeCaptioner(R"(, "backbone_config": {"model_type": "gpt2"})"); });
}

}  // namespace
}  // namespace heddle
