// heddle forward and heddle info over models of the registry.
#include <gtest/gtest.h>

#include "heddle/base/files/files.h"
#include "heddle/base/json/json.h"
#include "heddle/infer/loading/loaded_model.h"
#include "heddle/io/safetensors.h"
#include "heddle/tensor/convert.h"
#include "tests/support/cli_runner.h"

namespace heddle::testing {
namespace {

using Tensors = std::vector<std::pair<std::string, std::vector<int64_t>>>;

class StackCommand : public ::testing::Test {
 protected:
  TempDir folder;
  const std::string model = (folder / "model").string();

  void write_gpt2() {
    nn::Parameters parameters(1);
    const auto gpt2 = make_model(
        nn::Scope(parameters),
        Json::parse(R"({"model_type": "gpt2", "vocab_size": 30, "n_positions": 8, "n_embd": 16,
                        "n_layer": 2, "n_head": 2})"));
    save_model(model, *gpt2, parameters);
  }

  // [1, time] tensors in, a tensor of the outputs out.
  std::vector<float> forward(const Tensors& tensors, const std::string& wanted, int exit_code = 0) {
    const std::string inputs = (folder / "in").string(), outputs = (folder / "out").string();
    std::vector<NamedTensorView> views;
    for (const auto& [name, values] : tensors) {
      views.push_back({name,
                       DType::i64,
                       {1, static_cast<int64_t>(values.size())},
                       std::as_bytes(std::span(values))});
    }
    write_safetensors(inputs, views);
    const CliResult result = run_heddle({"forward", model, "--input", inputs, "--output", outputs});
    EXPECT_EQ(result.exit_code, exit_code) << result.err;
    error = result.err;
    if (exit_code != 0) return {};
    const SafetensorsFile file = SafetensorsFile::open(outputs);
    const StoredTensor& info = file.info(wanted);
    std::vector<float> values(info.elements());
    convert_to_floats(info.bytes.data(), info.dtype, values);
    return values;
  }

  std::string error;
};

TEST_F(StackCommand, forward_counts_positions_by_column_unless_they_are_given) {
  write_gpt2();
  const auto plain = forward({{"input_ids", {3, 4, 5}}}, "logits");
  EXPECT_EQ(plain.size(), 3u * 30);
  EXPECT_EQ(forward({{"input_ids", {3, 4, 5}}, {"position_ids", {0, 1, 2}}}, "logits"), plain);
  EXPECT_NE(forward({{"input_ids", {3, 4, 5}}, {"position_ids", {1, 2, 3}}}, "logits"), plain);
  const auto padded =
      forward({{"input_ids", {9, 3, 4, 5}}, {"attention_mask", {0, 1, 1, 1}}}, "logits");
  EXPECT_NE(std::vector<float>(padded.begin() + 30, padded.end()), plain);
  const auto given = forward({{"input_ids", {9, 3, 4, 5}},
                              {"attention_mask", {0, 1, 1, 1}},
                              {"position_ids", {0, 0, 1, 2}}},
                             "logits");
  ASSERT_EQ(given.size(), 4u * 30);
  for (size_t i = 0; i < given.size(); ++i) {  // other sums: with the hidden token, which adds 0
    EXPECT_NEAR(given[i], i < 30 ? 0 : plain[i - 30], 1e-6);
  }
}

TEST_F(StackCommand, export_writes_the_model_with_its_class_dtype_and_tokenizer_files) {
  write_gpt2();
  for (const char* name : {"vocab.json", "encoder.json", "vocab.bpe"}) {
    write_file_atomic(model + "/" + name, "{}");
  }
  const std::string out = (folder / "out").string();
  const CliResult result = run_heddle({"export", model, "--out", out, "--dtype", "bf16"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("a gpt2 in bf16"), std::string::npos) << result.out;
  const Json config = Json::load(out + "/config.json");
  EXPECT_EQ(config.at("architectures"), Json(std::vector<std::string>{"GPT2LMHeadModel"}));
  EXPECT_EQ(config.get_string("torch_dtype"), "bfloat16");
  for (const char* name : {"vocab.json", "encoder.json", "vocab.bpe"}) {
    EXPECT_EQ(read_file(out + "/" + name), "{}");
  }
  const auto file = SafetensorsFile::open(out + "/model.safetensors");
  EXPECT_EQ(file.info("transformer.h.0.attn.c_attn.weight").dtype, DType::bf16);
  EXPECT_NO_THROW(load_model(out));
  EXPECT_EQ(run_heddle({"export", model, "--out", out, "--format", "marian"}).exit_code, 2);
  EXPECT_EQ(run_heddle({"export", model, "--out", out, "--dtype", "f64"}).exit_code, 2);
  EXPECT_EQ(run_heddle({"export", model, "--out", model}).exit_code, 2);
}

TEST_F(StackCommand, forward_refuses_what_does_not_fit_by_name) {
  write_gpt2();
  forward({{"input_ids", {3, 30}}}, "", 3);
  EXPECT_NE(error.find("input_ids[0, 1] is 30"), std::string::npos) << error;
  forward({{"input_ids", {3, 4}}, {"position_ids", {0, 8}}}, "", 3);
  EXPECT_NE(error.find("8 learned positions"), std::string::npos) << error;
  forward({{"input_ids", {3, 4}}, {"token_type_ids", {0, 1}}}, "", 3);
  EXPECT_NE(error.find("token types"), std::string::npos) << error;
  forward({{"input_ids", {3, 4}}, {"position_ids", {0, 1, 2}}}, "", 3);
  EXPECT_NE(error.find("position_ids has shape [1, 3]"), std::string::npos) << error;
}

TEST_F(StackCommand, forward_says_which_config_keys_and_inputs_it_passes_over) {
  write_gpt2();
  Json config = Json::load(model + "/config.json");
  config["some_new_key"] = 3;
  config["use_cache"] = true;  // changes no number
  write_file(model + "/config.json", config.dump());
  forward({{"input_ids", {3, 4}}, {"decoder_input_ids", {3, 4}}}, "logits");
  EXPECT_NE(error.find("warning: "), std::string::npos) << error;
  EXPECT_NE(error.find("some_new_key"), std::string::npos) << error;
  EXPECT_EQ(error.find("use_cache"), std::string::npos) << error;
  EXPECT_NE(error.find("'decoder_input_ids' is not used"), std::string::npos) << error;
}

TEST_F(StackCommand, info_counts_parameters_by_the_first_part_of_their_names) {
  write_gpt2();
  const CliResult result = run_heddle({"info", model, "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json json = Json::parse(result.out), &parameters = json.at("parameters");
  EXPECT_EQ(json.get_string("model_type"), "gpt2");
  EXPECT_EQ(parameters.get_int("wte"), 30 * 16);
  EXPECT_EQ(parameters.get_int("wpe"), 8 * 16);
  EXPECT_EQ(parameters.get_int("h"), 2 * (12 * 16 * 16 + 13 * 16));
  EXPECT_EQ(parameters.get_int("ln_f"), 2 * 16);
  EXPECT_EQ(parameters.get_int("total"), 30 * 16 + 8 * 16 + 2 * (12 * 16 * 16 + 13 * 16) + 2 * 16);
  EXPECT_EQ(json.at("bytes").get_int("cache_per_token_f32"), 4 * 2 * 2 * 16);
  EXPECT_TRUE(json.at("tokenizer").is_null());
}

TEST_F(StackCommand, info_of_an_encoder_has_no_cache) {
  nn::Parameters parameters(1);
  const auto bert =
      make_model(nn::Scope(parameters),
                 Json::parse(R"({"model_type": "bert", "vocab_size": 30, "hidden_size": 16,
                      "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 20,
                      "max_position_embeddings": 8})"));
  save_model(model, *bert, parameters);
  const CliResult result = run_heddle({"info", model});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("(bert)"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("num_attention_heads"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("pooler"), std::string::npos) << result.out;
  EXPECT_EQ(result.out.find("cache"), std::string::npos) << result.out;
}

}  // namespace
}  // namespace heddle::testing
