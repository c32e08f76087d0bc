// Tables of positions: worked numbers, switches, rotation, models.
#include "heddle/inspect/positions.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/base/temporary.h"
#include "tests/cli/vision_model.h"
#include "tests/infer/small_models.h"
#include "tests/support/cli_runner.h"
#include "tests/support/places.h"

namespace heddle::inspect {
namespace {

using heddle::testing::small_config;
using heddle::testing::SmallModel;
using heddle::testing::TempDir;

TEST(Positions, halves_hold_the_columns_of_interleaved_in_another_order) {
  PositionOptions o{.positions = 5, .width = 6};
  const PositionTable a = position_table(o);
  o.sinusoidal.layout = "halves";
  const PositionTable b = position_table(o);
  EXPECT_EQ(b.names,
            (std::vector<std::string>{"sin 0", "sin 1", "sin 2", "cos 0", "cos 1", "cos 2"}));
  for (int64_t j = 0; j < 6; ++j) {
    for (int64_t k = 0; k < 6; ++k) {
      if (a.names[j] != b.names[k]) continue;
      for (int64_t i = 0; i < 5; ++i) EXPECT_EQ(a.values[i * 6 + j], b.values[i * 6 + k]);
    }
  }
}

TEST(Positions, slowest_wave_of_tensor2tensor_has_frequency_1e_4) {
  const PositionTable t =
      position_table({.positions = 2, .width = 8, .sinusoidal = {.frequencies = "tensor2tensor"}});
  EXPECT_FLOAT_EQ(t.values[8 + 6], std::sin(1e-4f));  // the paper's is 10000^(-6/8)
}

TEST(Positions, rotary_angles_are_position_times_frequency) {
  const PositionTable t = position_table({.kind = "rotary", .positions = 4, .width = 8});
  EXPECT_EQ(t.columns, 4);
  const std::vector<double> frequencies = {1, 0.1, 0.01, 0.001};
  for (int64_t pos = 0; pos < 4; ++pos) {
    for (int64_t i = 0; i < 4; ++i) {
      EXPECT_FLOAT_EQ(t.values[pos * 4 + i], static_cast<float>(pos * frequencies[i]));
    }
  }
}

TEST(Positions, learned_table_of_a_model_is_the_one_in_its_file) {
  const TempDir folder;
  TransformerConfig c = small_config();
  c.position_embedding_type = "learned";
  const SmallModel m(c);
  save_model(folder.path().string(), *m.made, m.parameters);
  for (const char* stack : {"encoder", "decoder"}) {
    const PositionTable t = model_positions(folder.path().string(), stack, 5);
    EXPECT_EQ(t.kind, "learned");
    const std::string name = fmt::format("model.{}.embed_positions.weight", stack);
    int found = 0;
    for (const auto& p : m.parameters.all()) {
      if (p->name() != name) continue;
      ++found;
      EXPECT_EQ(t.values, p->value().slice(0, 0, 5).to_floats()) << stack;
      EXPECT_EQ(t.columns, c.d_model);
    }
    EXPECT_EQ(found, 1) << name;
    EXPECT_NE(t.about.find(name), std::string::npos) << t.about;
  }
  EXPECT_EQ(model_positions(folder.path().string(), "encoder", 0).positions, 64);
  EXPECT_THROW(model_positions(folder.path().string(), "encoder", 65), Error);
}

TEST(Positions, model_without_a_learned_table_gives_the_computed_one_of_its_config) {
  const TempDir folder;
  TransformerConfig c = small_config();
  c.sinusoidal_layout = "halves";
  const SmallModel m(c);
  save_model(folder.path().string(), *m.made, m.parameters);
  const PositionTable t = model_positions(folder.path().string(), "encoder", 7);
  EXPECT_EQ(t.values, nn::sinusoidal_table(7, 32, {.layout = "halves"}).to_floats());
}

// The tables of BART and M2M-100 begin with rows of no position.
TEST(Positions, rows_before_the_first_position_are_passed_over) {
  const std::string fixtures = std::string(testing::kFixtures) + "/seq2seq/";
  const PositionTable bart = model_positions(fixtures + "bart", "encoder", 3);
  const LoadedModel model = load_model(fixtures + "bart");
  int compared = 0;
  for (const auto& p : model.parameters.all()) {
    if (!p->name().ends_with("encoder.embed_positions.weight")) continue;
    EXPECT_EQ(bart.values, p->value().slice(0, 2, 3).to_floats());
    ++compared;
  }
  EXPECT_EQ(compared, 1);
  const PositionTable m2m = model_positions(fixtures + "m2m_100", "encoder", 1);
  EXPECT_NEAR(m2m.values[0], std::sin(2.0), 1e-6);  // pad + 1 rows stand before
  EXPECT_NE(m2m.about.find("sin((pos + 2) /"), std::string::npos) << m2m.about;
}

TEST(Positions, model_that_takes_any_length_has_128_on_a_page) {
  const std::string t5 = std::string(testing::kFixtures) + "/seq2seq/t5";
  EXPECT_EQ(model_positions(t5, "encoder", 0).positions, 128);
}

TEST(Positions, bias_by_distance_is_said_where_tokens_are_given_nothing) {
  const std::string t5 = std::string(testing::kFixtures) + "/seq2seq/t5";
  const PositionTable t = model_positions(t5, "encoder", 2);
  EXPECT_EQ(t.kind, "bias");
  EXPECT_NE(t.about.find("how far apart"), t.about.npos) << t.about;
}

// A model with random weights of that config, as a folder.
void write_model(const std::string& folder, const std::string& config) {
  nn::Parameters parameters(3);
  save_model(folder, *make_model(nn::Scope(parameters), Json::parse(config)), parameters);
}

TEST(Positions, images_have_those_of_their_grid) {
  const TempDir folder;
  const std::string model = (folder / "model").string();
  for (const std::string name : {"vit", "deit"}) {
    testing::write_vision_model(model, name);
    const PositionTable t = model_positions(model, "", 0);
    const auto file = testing::vision_fixture(name);
    const std::vector<float> wanted = floats(file, name + ".embeddings.position_embeddings");
    EXPECT_EQ(t.kind, "grid");
    EXPECT_EQ(t.positions, name == "vit" ? 10 : 11);
    EXPECT_EQ(t.values, wanted);
    EXPECT_NE(t.about.find(name == "vit" ? "1 token before" : "2 tokens before"), t.about.npos);
    EXPECT_NE(t.about.find("3 x 3"), t.about.npos) << t.about;
  }
  const std::string cct = (folder / "cct").string();
  write_model(cct, R"({"model_type": "cct", "image_size": 16, "hidden_size": 16,
      "num_hidden_layers": 1, "num_attention_heads": 2})");
  const PositionTable t = model_positions(cct, "", 2);
  EXPECT_EQ(t.kind, "grid");
  EXPECT_EQ(t.columns, 16);
  EXPECT_NE(t.about.find("positional_emb"), t.about.npos) << t.about;
  EXPECT_EQ(t.about.find("before the image"), t.about.npos) << t.about;
}

TEST(Positions, those_of_columns_and_rows_are_shown_cell_by_cell) {
  const TempDir folder;
  const std::string model = (folder / "model").string();
  write_model(model, R"({"model_type": "vit", "image_size": [8, 12], "patch_size": 4,
      "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8,
      "two_dimensional_positions": true})");
  const PositionTable t = model_positions(model, "", 0);
  EXPECT_EQ(t.kind, "axes");
  ASSERT_EQ(t.positions, 1 + 2 * 3);
  ASSERT_EQ(t.columns, 8);
  EXPECT_EQ(t.names[3], "x 3");
  EXPECT_EQ(t.names[4], "y 0");
  for (const char* part : {"column_embeddings", "row_embeddings", "1 token before", "2 x 3"}) {
    EXPECT_NE(t.about.find(part), t.about.npos) << t.about;
  }
  const auto file = SafetensorsFile::open(model + "/model.safetensors");
  const std::vector<float> columns = floats(file, "vit.embeddings.column_embeddings"),
                           rows = floats(file, "vit.embeddings.row_embeddings");
  for (int64_t j = 0; j < 8; ++j) EXPECT_EQ(t.values[j], 0);  // of the class token
  for (int64_t y = 0; y < 2; ++y) {
    for (int64_t x = 0; x < 3; ++x) {
      for (int64_t j = 0; j < 4; ++j) {
        const float* const cell = t.values.data() + (1 + y * 3 + x) * 8;
        EXPECT_EQ(cell[j], columns[x * 4 + j]);
        EXPECT_EQ(cell[4 + j], rows[y * 4 + j]);
      }
    }
  }
  EXPECT_EQ(model_positions(model, "", 2).positions, 2);
}

// transformers' row of a query and a key is (line of the query - line of the key + side - 1) *
// (2 side - 1), and the same of columns added.
TEST(Positions, biases_of_windows_lie_around_the_query) {
  const TempDir folder;
  const std::string model = (folder / "model").string();
  nn::Parameters parameters(3);
  const auto made = make_model(nn::Scope(parameters), Json::parse(R"({"model_type": "swin",
      "image_size": 16, "patch_size": 2, "embed_dim": 8, "depths": [1, 1], "num_heads": [1, 2],
      "window_size": 3})"));
  int tables = 0;
  for (const auto& p : parameters.all()) {
    if (!p->name().ends_with("relative_position_bias_table")) continue;
    for (int64_t i = 0; i < p->elements(); ++i) {
      p->value().data<float>()[i] = static_cast<float>(100 * tables + i);
    }
    p->changed(true), ++tables;
  }
  ASSERT_EQ(tables, 2);
  save_model(model, *made, parameters);
  const PositionTable t = model_positions(model, "", 0);
  EXPECT_EQ(t.kind, "window");
  EXPECT_EQ(t.window, 3);
  EXPECT_EQ(t.names, (std::vector<std::string>{"0.0", "1.0", "1.1"}));
  const auto at = [&](const char* way, size_t head) {
    const auto row = std::ranges::find(t.row_names, way) - t.row_names.begin();
    EXPECT_LT(row, 25) << way;
    return t.values[static_cast<size_t>(row) * 3 + head];
  };
  EXPECT_EQ(at("+0 +0", 0), 2 * 5 + 2);
  EXPECT_EQ(at("+0 +1", 0), 2 * 5 + 1);    // the key stands to the right
  EXPECT_EQ(at("-2 +0", 0), 4 * 5 + 2);    // above
  EXPECT_EQ(at("+2 -1", 1), 100 + 2 * 3);  // below, to the left: of the first of two heads
  EXPECT_EQ(at("+2 -1", 2), 100 + 2 * 3 + 1);
  EXPECT_EQ(model_positions(model, "", 4).positions, 4);
  expect_error(ErrorKind::data, {"26 positions", "the model learned 25"},
               [&] { model_positions(model, "", 26); });
}

TEST(Positions, queries_of_a_detector_are_none) {
  const TempDir folder;
  const std::string model = (folder / "model").string();
  testing::write_vision_model(model, "detr");
  expect_error(ErrorKind::data, {"detr", "sines and cosines of a cell's row", "no such table"},
               [&] { model_positions(model, "", 0); });
}

TEST(Positions, relative_ones_of_language_models_are_said) {
  const TempDir folder;
  const std::string model = (folder / "model").string();
  for (const char* config :
       {R"({"model_type": "xlnet", "vocab_size": 40, "d_model": 12, "n_layer": 1, "n_head": 3,
            "d_inner": 20})",
        R"({"model_type": "transfo-xl", "vocab_size": 40, "d_model": 12, "d_embed": 12,
            "n_layer": 1, "n_head": 3, "d_head": 4, "d_inner": 20, "cutoffs": [10],
            "div_val": 1})"}) {
    write_model(model, config);
    expect_error(ErrorKind::data, {"how far away a key is", "relative positions"},
                 [&] { model_positions(model, "", 0); });
  }
}

// Those of the paper; of Llama 3.1 waves longer than a context of training are stretched, those
// shorter than a quarter of it stay.
TEST(Positions, heads_of_llama_are_turned_by_the_angles_of_their_config) {
  const TempDir folder;
  const std::string model = (folder / "model").string();
  const std::string common = R"(, "vocab_size": 40, "hidden_size": 16, "intermediate_size": 20,
      "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8,
      "max_position_embeddings": 512, "rope_theta": 10000.0)";
  for (const char* type : {"llama", "mistral", "mixtral", "qwen2", "qwen3"}) {
    write_model(model, fmt::format(R"({{"model_type": "{}"{}}})", type, common));
    const PositionTable t = model_positions(model, "", 3);
    EXPECT_EQ(t.kind, "rotary") << type;
    EXPECT_EQ(t.positions, 3);
    EXPECT_EQ(t.columns, 4);
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_DOUBLE_EQ(t.frequencies[i], std::pow(10000.0, -2.0 * static_cast<double>(i) / 8));
      EXPECT_FLOAT_EQ(t.values[8 + i], static_cast<float>(2 * t.frequencies[i]));
    }
  }
  EXPECT_EQ(model_positions(model, "", 0).positions, 128);
  write_model(model, R"({"model_type": "llama")" + common +
                         R"(, "rope_scaling": {"rope_type": "linear", "factor": 4.0}})");
  EXPECT_DOUBLE_EQ(model_positions(model, "", 1).frequencies[1], 0.1 / 4);
  write_model(model, R"({"model_type": "llama")" + common +
                         R"(, "rope_scaling": {"rope_type": "llama3", "factor": 8.0,
      "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 100}})");
  const PositionTable t = model_positions(model, "", 1);
  EXPECT_DOUBLE_EQ(t.frequencies[0], 1);         // 15.9 waves in 100 positions
  EXPECT_DOUBLE_EQ(t.frequencies[2], 0.01 / 8);  // 0.16
  EXPECT_NE(t.about.find("8 times as slowly"), t.about.npos) << t.about;
  expect_error(ErrorKind::usage, {"decoder", "one stack"},
               [&] { model_positions(model, "decoder", 1); });
}

TEST(Positions, recurrence_tells_order_without_any) {
  const TempDir folder;
  const std::string model = (folder / "model").string();
  write_model(model, R"({"model_type": "rnn_seq2seq", "vocab_size": 30, "embedding_size": 8,
      "hidden_size": 8, "encoder_hidden_size": 4})");
  for (const char* stack : {"encoder", "decoder"}) {
    const PositionTable t = model_positions(model, stack, 2);
    EXPECT_EQ(t.kind, "recurrence");
    EXPECT_NE(t.about.find("one after the other"), t.about.npos) << t.about;
  }
  EXPECT_EQ(model_positions(model, "encoder", 0).positions, 128);  // any number is taken
  write_model(model, R"({"model_type": "rnn_lm", "vocab_size": 30, "embedding_size": 8,
      "hidden_size": 8})");
  EXPECT_EQ(model_positions(model, "", 2).kind, "recurrence");
}

TEST(Positions, captioner_has_those_of_its_words_alone) {
  const TempDir folder;
  const std::string model = (folder / "model").string();
  const std::string common = R"({"model_type": "captioner", "vocab_size": 20, "hidden_size": 16,
      "memory_size": 8, "image_size": 16, "backbone_config": {"model_type": "resnet",
      "norm": "group", "norm_groups": 2, "layer_type": "plain", "stem": "cifar",
      "downsample": "pool", "embedding_size": 4, "hidden_sizes": [8], "depths": [0]})";
  write_model(model, common + "}");
  const PositionTable t = model_positions(model, "", 2);
  EXPECT_EQ(t.kind, "recurrence");
  EXPECT_NE(t.about.find("of the tokens of captions"), t.about.npos) << t.about;
  write_model(model, common + R"(, "decoder_type": "transformer", "decoder_attention_heads": 2})");
  EXPECT_EQ(model_positions(model, "", 2).kind, "sinusoidal");
}

}  // namespace
}  // namespace heddle::inspect
