// heddle forward at the command line: PyTorch's tensors from PyTorch's weights, and bad input.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "heddle/base/json/json.h"
#include "heddle/infer/loading/loaded_model.h"
#include "heddle/io/safetensors.h"
#include "heddle/models/transformer.h"
#include "heddle/tensor/convert.h"
#include "tests/parity/comparison.h"
#include "tests/support/cli_runner.h"

namespace heddle::testing {
namespace {

struct IntTensor {
  std::string name;
  std::vector<int64_t> shape, values;
};

class Forward : public ::testing::Test {
 protected:
  TempDir folder;
  std::string model = (folder / "model").string(), inputs = (folder / "in.safetensors").string(),
              outputs = (folder / "out.safetensors").string();

  // A model directory without tokenizer, from a fixture's weights.
  SafetensorsFile write_model(const std::string& name) {
    auto file =
        SafetensorsFile::open(std::string(kFixtures) + "/transformer/" + name + ".safetensors");
    TransformerConfig config;
    const auto unknown = from_json(config, Json::parse(file.metadata().at("config")), name);
    EXPECT_TRUE(unknown.empty());
    nn::Parameters parameters(1);
    const auto built = model_config(config)->make(nn::Scope(parameters));
    for (auto& p : parameters.all()) {
      const int64_t width = p->elements() / p->value().size(0);
      for (const nn::Part& part : p->parts()) {
        const auto values = floats(file, part.name);
        std::copy(values.begin(), values.end(), p->value().data<float>() + part.begin * width);
      }
    }
    save_model(model, *built, parameters);
    return file;
  }

  void write_inputs(const std::vector<IntTensor>& tensors) {
    std::vector<NamedTensorView> views;
    for (const IntTensor& t : tensors) {
      views.push_back({t.name, DType::i64, t.shape, std::as_bytes(std::span(t.values))});
    }
    write_safetensors(inputs, views);
  }

  CliResult forward(std::vector<std::string> flags = {}) {
    flags.insert(flags.begin(), {"forward", model, "--input", inputs, "--output", outputs});
    return run_heddle(flags);
  }

  std::vector<float> logits(const std::vector<IntTensor>& tensors) {
    write_inputs(tensors);
    const CliResult result = forward();
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return floats(SafetensorsFile::open(outputs), "logits");
  }

  void expect_data_error(const std::vector<IntTensor>& tensors, const std::string& part) {
    write_inputs(tensors);
    const CliResult result = forward();
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
    EXPECT_FALSE(std::filesystem::exists(outputs));
  }
};

// The inputs of a fixture, with the mask that its labels imply for the decoder.
std::vector<IntTensor> fixture_inputs(const SafetensorsFile& file) {
  std::vector<IntTensor> tensors;
  for (const char* name : {"input_ids", "attention_mask", "decoder_input_ids"}) {
    tensors.push_back({name, file.info(name).shape, integers(file, name)});
  }
  IntTensor mask{"decoder_attention_mask", file.info("labels").shape, integers(file, "labels")};
  for (int64_t& x : mask.values) x = x >= 0 ? 1 : 0;
  tensors.push_back(mask);
  return tensors;
}

class ForwardParity : public Forward, public ::testing::WithParamInterface<std::string> {};

TEST_P(ForwardParity, every_tensor_matches_pytorch_in_name_shape_and_value) {
  const SafetensorsFile expected = write_model(GetParam());
  write_inputs(fixture_inputs(expected));
  const CliResult result = forward({"--all"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const SafetensorsFile actual = SafetensorsFile::open(outputs);
  size_t compared = 0;
  for (const std::string& name : expected.names()) {
    const bool is_output = !name.starts_with("grad.") &&
                           (name == "logits" || name.find("hidden_state") != std::string::npos ||
                            name.find("attentions.") != std::string::npos);
    if (!is_output) continue;
    ++compared;
    ASSERT_EQ(actual.info(name).shape, expected.info(name).shape) << name;
    EXPECT_EQ(actual.info(name).dtype, DType::f32);
    const auto ours = floats(actual, name), theirs = floats(expected, name);
    float largest = 0;
    for (const float x : theirs) largest = std::max(largest, std::abs(x));
    for (size_t i = 0; i < ours.size(); ++i) {
      // As in tests/parity: f32 sums through some 15 products.
      ASSERT_NEAR(ours[i], theirs[i], 2e-5 * largest) << name << " " << i;
    }
  }
  EXPECT_EQ(compared, actual.names().size());
}

INSTANTIATE_TEST_SUITE_P(Fixtures, ForwardParity,
                         ::testing::Values("pre_tied", "post_untied", "learned_positions"),
                         [](const auto& fixture) { return fixture.param; });

const IntTensor kTarget = {"decoder_input_ids", {1, 3}, {2, 9, 10}};

TEST_F(Forward, logits_only_unless_all_is_asked_for) {
  write_model("post_tied");
  logits({{"input_ids", {1, 3}, {5, 6, 3}}, kTarget});
  EXPECT_EQ(SafetensorsFile::open(outputs).names().size(), 2u);
}

TEST_F(Forward, masked_tokens_change_nothing_and_give_zeros) {
  write_model("post_tied");
  const auto alone = logits({{"input_ids", {1, 3}, {5, 6, 3}}, kTarget});
  const auto padded = logits({{"input_ids", {1, 5}, {5, 6, 3, 28, 0}},
                              {"attention_mask", {1, 5}, {1, 1, 1, 0, 0}},
                              kTarget});
  EXPECT_EQ(padded, alone);  // bit for bit
  const auto encoder = floats(SafetensorsFile::open(outputs), "encoder_last_hidden_state");
  for (size_t i = 3 * 16; i < encoder.size(); ++i) EXPECT_EQ(encoder[i], 0);
}

// Positions are columns, so tokens after padding are not where they are without.
TEST_F(Forward, position_is_the_column) {
  write_model("post_tied");
  const auto left = logits(
      {{"input_ids", {1, 4}, {0, 5, 6, 3}}, {"attention_mask", {1, 4}, {0, 1, 1, 1}}, kTarget});
  EXPECT_NE(left, logits({{"input_ids", {1, 3}, {5, 6, 3}}, kTarget}));
  const auto hole = logits(
      {{"input_ids", {1, 4}, {5, 0, 6, 3}}, {"attention_mask", {1, 4}, {1, 0, 1, 1}}, kTarget});
  EXPECT_NE(left, hole);
  EXPECT_EQ(hole, logits({{"input_ids", {1, 4}, {5, 27, 6, 3}},
                          {"attention_mask", {1, 4}, {1, 0, 1, 1}},
                          kTarget}));
}

TEST_F(Forward, without_positions_padding_may_stand_anywhere) {
  write_model("no_positions");
  const auto alone = logits({{"input_ids", {1, 3}, {5, 6, 3}}, kTarget});
  EXPECT_EQ(logits({{"input_ids", {1, 5}, {0, 5, 0, 6, 3}},
                    {"attention_mask", {1, 5}, {0, 1, 0, 1, 1}},
                    kTarget}),
            alone);
}

TEST_F(Forward, inputs_that_do_not_fit_are_data_errors_that_name_them) {
  write_model("post_tied");
  const IntTensor source = {"input_ids", {1, 3}, {5, 6, 3}};
  expect_data_error({source}, "decoder_input_ids");
  expect_data_error({kTarget}, "input_ids");
  expect_data_error({{"input_ids", {3}, {5, 6, 3}}, kTarget}, "input_ids has shape [3]");
  expect_data_error({{"input_ids", {1, 3}, {5, 29, 3}}, kTarget}, "input_ids[0, 1] is 29");
  expect_data_error({{"input_ids", {1, 3}, {5, -1, 3}}, kTarget}, "input_ids[0, 1] is -1");
  expect_data_error({source, {"decoder_input_ids", {2, 1}, {2, 2}}}, "a batch of 1");
  expect_data_error({source, {"attention_mask", {1, 2}, {1, 1}}, kTarget},
                    "attention_mask has shape [1, 2]");
}

TEST_F(Forward, ids_that_are_floats_are_a_data_error) {
  write_model("post_tied");
  const std::vector<float> ids = {5, 6, 3};
  const std::vector<int64_t> target = {2, 9};
  write_safetensors(inputs,
                    {{"input_ids", DType::f32, {1, 3}, std::as_bytes(std::span(ids))},
                     {"decoder_input_ids", DType::i64, {1, 2}, std::as_bytes(std::span(target))}});
  const CliResult result = forward();
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_NE(result.err.find("input_ids has dtype f32"), std::string::npos) << result.err;
}

TEST_F(Forward, broken_or_missing_inputs_are_data_errors) {
  write_model("post_tied");
  EXPECT_EQ(forward().exit_code, 3);
  write_file(inputs, "no tensors");
  EXPECT_EQ(forward().exit_code, 3);
}

TEST_F(Forward, folder_that_cannot_be_written_is_an_error_that_names_it) {
  write_model("post_tied");
  write_inputs({{"input_ids", {1, 3}, {5, 6, 3}}, kTarget});
  outputs = "/no/such/folder/out.safetensors";
  const CliResult result = forward();
  EXPECT_NE(result.exit_code, 0);
  EXPECT_NE(result.err.find("/no/such/folder"), std::string::npos) << result.err;
}

}  // namespace
}  // namespace heddle::testing
