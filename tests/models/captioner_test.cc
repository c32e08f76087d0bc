// Captioners: how far a cell sees, what stands of patches, where cells are told apart; a
// Transformer's decoder over the grid, its maps and their gradients.
#include <gtest/gtest.h>

#include <algorithm>

#include "heddle/models/captioner.h"
#include "heddle/models/registry.h"
#include "heddle/models/transformer.h"
#include "heddle/ops/elementwise.h"
#include "heddle/ops/recurrent/attention_penalties.h"
#include "tests/base/temporary.h"
#include "tests/models/numbered_images.h"
#include "tests/nn/slopes.h"

namespace heddle {
namespace {

struct MadeCaptioner {
  nn::Parameters parameters{3};
  std::unique_ptr<Model> made;
  const Captioner* model;

  explicit MadeCaptioner(const std::string& more) {
    made = make_model(nn::Scope(parameters), Json::parse(R"({"model_type": "captioner",
        "vocab_size": 20, "hidden_size": 16)" + more + "}"));
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

// --- a Transformer's decoder ---------------------------------------------------------------------

std::string with_transformer(const std::string& more = "") {
  return kWithoutNorms + std::string(R"(, "memory_size": 8, "decoder_type": "transformer",
      "decoder_layers": 2, "decoder_attention_heads": 2, "decoder_ffn_dim": 24, "dropout": 0,
      "embedding_dropout": 0)") +
         more;
}

// Two captions over grids of 2 x 3 and 2 x 2 cells.
struct TwoCaptions {
  NumberedImages images{{{0, {16, 24}}, {1, {16, 16}}}};
  std::vector<int32_t> ids = {2, 5, 9, 4, 2, 7, 7};
  Segments target = Segments::from_lengths(std::vector<int64_t>{4, 3});

  nn::ImageRows rows = images.rows();
  Segments cells = Segments::from_lengths(std::vector<int64_t>{6, 4});

  nn::TokenRows tokens() const { return {.ids = ids, .segments = &target}; }
  Captioner::Attended attended(const Captioner& model, const nn::Run& run) const {
    return model.decode_attending(tokens(), model.encode(rows, run), cells, run);
  }
};

// The grid stands where a translator's encoder would: the same weights give the same bits.
TEST(Captioner, transformer_over_a_grid_is_the_translators_decoder) {
  for (const bool is_pre : {true, false}) {
    const MadeCaptioner captioner(with_transformer(
        is_pre ? "" : R"(, "normalize_before": false, "activation_function": "gelu",
                                      "decoder_position_embedding_type": "learned")"));
    TransformerConfig c;
    c.set_sizes(2, 16, 24, 2);
    c.vocab_size = 20, c.memory_width = 8, c.normalize_before = is_pre;
    c.share_encoder_decoder_embeddings = false;
    if (!is_pre) c.activation_function = "gelu", c.position_embedding_type = "learned";
    nn::Parameters parameters(9);
    const Transformer translator(nn::Scope(parameters), c);
    int64_t copied = 0;
    for (auto& to : parameters.all()) {
      for (const auto& from : captioner.parameters.all()) {
        if (from->name() != to->name() || !to->name().starts_with("model.decoder.")) continue;
        const std::vector<float> values = from->value().to_floats();
        std::ranges::copy(values, to->value().data<float>());
        to->changed(true);
        ++copied;
      }
    }
    EXPECT_GT(copied, 30);
    const TwoCaptions two;
    const NoGrad off;
    const Tensor grid = captioner.model->encode(two.rows, {});
    EXPECT_EQ(captioner.model->memory_segments(two.rows), two.cells);
    EXPECT_EQ(captioner.model->decode(two.tokens(), grid, two.cells, {}).to_floats(),
              translator.decode(two.tokens(), grid, two.cells, {}).to_floats());
  }
}

TEST(Captioner, maps_of_a_transformer_are_the_means_over_the_heads_of_its_last_layer) {
  const MadeCaptioner captioner(with_transformer());
  std::vector<float> means(4 * 6 + 3 * 4);
  nn::Observer observer;
  int64_t calls = 0;
  observer.attention = [&](const nn::AttentionCall& call) {
    if (call.name() != "cross_attentions.1") return;
    ++calls;
    for (int64_t h = 0; h < call.heads(); ++h) {
      size_t at = 0;
      for (int64_t s = 0; s < 2; ++s) {
        for (const float w : call.weights(s, h).to_floats()) means[at++] += w / 2;
      }
    }
  };
  nn::Run run;
  run.observer = &observer;
  const NoGrad off;
  const TwoCaptions two;
  const Captioner::Attended y = two.attended(*captioner.model, run);
  EXPECT_EQ(calls, 1);
  ASSERT_EQ(y.weights.elements(), std::ssize(means));
  // Computed by other code: a few roundings of exponentials.
  const std::vector<float> weights = y.weights.to_floats();
  for (size_t i = 0; i < means.size(); ++i) EXPECT_NEAR(weights[i], means[i], 1e-6);
  EXPECT_FALSE(y.gates.defined());
  EXPECT_EQ(
      y.h.to_floats(),
      captioner.model->decode(two.tokens(), captioner.model->encode(two.rows, {}), two.cells, {})
          .to_floats());
}

// Through the maps too, and in the same bits where layers are computed again.
TEST(Captioner, every_gradient_of_a_transformer_is_the_slope_of_loss_and_regulariser) {
  MadeCaptioner captioner(with_transformer());
  const TwoCaptions two;
  const auto loss = [&](bool recompute) {
    const Captioner::Attended y = two.attended(*captioner.model, {.recompute = recompute});
    return add(captioner.model->output().loss(y.h, two.ids, {}, {}).loss,
               scale(unevenness(y.weights, two.target, two.cells), 4));
  };
  backward(loss(true));
  std::vector<std::vector<float>> again;
  for (auto& p : captioner.parameters.all()) {  // statistics have none
    again.push_back(p->grad().defined() ? p->grad().to_floats() : std::vector<float>());
    p->grad() = Tensor();
  }
  backward(loss(false));
  int64_t checked = 0;
  for (size_t i = 0; i < again.size(); ++i) {
    nn::Parameter& p = *captioner.parameters.all()[i];
    if (again[i].empty()) continue;
    EXPECT_EQ(p.grad().to_floats(), again[i]) << p.name();
    // Of the decoder; biases of keys do not count, as the softmax takes them out.
    const bool is_asked = p.name().starts_with("model.decoder.");
    if (!is_asked || nn::squared_length(p.grad().to_floats()) < 1e-6) continue;
    EXPECT_NEAR(nn::slope_along_gradient(p, [&] { return loss(false); }), 1, 0.02) << p.name();
    EXPECT_NEAR(nn::slope_apart_from_gradient(p, [&] { return loss(false); }), 0, 0.1) << p.name();
    ++checked;
  }
  EXPECT_GT(checked, 25);
}

TEST(Captioner, settings_of_the_other_decoder_are_refused) {
  expect_error(ErrorKind::data, {"cell is gru", "decoder_type transformer has not"},
               [] { MadeCaptioner(with_transformer(R"(, "cell": "gru")")); });
  expect_error(ErrorKind::data, {"attention_gate is false"},
               [] { MadeCaptioner(with_transformer(R"(, "attention_gate": false)")); });
  expect_error(ErrorKind::data, {"decoder_ffn_dim is 24", "decoder_type recurrent has not"},
               [] { MadeCaptioner(R"(, "decoder_ffn_dim": 24)"); });
  expect_error(ErrorKind::data, {"hidden_size", "3"}, [] {
    MadeCaptioner(R"(, "decoder_type": "transformer", "decoder_attention_heads": 3)");
  });
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
