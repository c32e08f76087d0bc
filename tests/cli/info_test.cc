// heddle info at the command line.
#include <gtest/gtest.h>

#include "heddle/base/json/json.h"
#include "heddle/infer/loading/loaded_model.h"
#include "heddle/models/registry.h"
#include "tests/cli/model_fixture.h"

namespace heddle::testing {
namespace {

class Info : public ModelFixture {};

TEST_F(Info, json_counts_parameters_by_part) {
  const CliResult result = run_heddle({"info", model(), "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json json = Json::parse(result.out), &parameters = json.at("parameters");
  // Width d = 32, hidden h = 48, 2 layers each; attention 4 (d d + d), norm 2 d.
  const int64_t attention = 4 * (32 * 32 + 32), norm = 2 * 32;
  const int64_t feed_forward = 2 * 32 * 48 + 48 + 32;
  EXPECT_EQ(parameters.get_int("embeddings"), 312 * 32);
  EXPECT_EQ(parameters.get_int("encoder"), 2 * (attention + feed_forward + 2 * norm));
  EXPECT_EQ(parameters.get_int("decoder"), 2 * (2 * attention + feed_forward + 3 * norm));
  EXPECT_EQ(parameters.get_int("output"), 0);
  EXPECT_EQ(parameters.get_int("total"), parameters.get_int("embeddings") +
                                             parameters.get_int("encoder") +
                                             parameters.get_int("decoder"));
  EXPECT_EQ(json.at("bytes").get_int("weights_f32"), 4 * parameters.get_int("total"));
  EXPECT_EQ(json.at("bytes").get_int("cache_per_token_bf16"), 2 * 2 * 2 * 32);
  EXPECT_EQ(json.at("config").get_int("d_model"), 32);
  EXPECT_EQ(json.at("tokenizer").get_string("fingerprint"), shared_tokenizer().fingerprint());
}

TEST_F(Info, text_names_each_field_and_the_total) {
  const CliResult result = run_heddle({"info", model()});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const FieldInfo& field : list_fields(TransformerConfig())) {
    EXPECT_NE(result.out.find("  " + field.key + " "), std::string::npos) << field.key;
  }
  EXPECT_NE(result.out.find("total"), std::string::npos);
}

TEST_F(Info, model_without_tokenizer_is_described_too) {
  const TempDir copy;
  std::filesystem::copy(model(), copy / "m");
  std::filesystem::remove(copy / "m/tokenizer.model");
  const CliResult result = run_heddle({"info", (copy / "m").string(), "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(Json::parse(result.out).at("tokenizer").is_null());
}

TEST_F(Info, statistics_of_batch_norm_are_no_parameters) {
  const TempDir folder;
  const std::string resnet = (folder / "m").string();
  nn::Parameters made(5);
  const Json config = Json::parse(
      R"({"model_type": "resnet", "architectures": ["ResNetForImageClassification"],
          "embedding_size": 8, "hidden_sizes": [8], "depths": [1], "layer_type": "basic"})");
  save_model(resnet, *make_model(nn::Scope(made), config), made);
  const CliResult result = run_heddle({"info", resnet, "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json json = Json::parse(result.out);
  // Three convolutions, each with a norm of 8 channels, and 2 classes.
  const int64_t total = 7 * 7 * 3 * 8 + 2 * 3 * 3 * 8 * 8 + 3 * 2 * 8 + 2 * 8 + 2;
  EXPECT_EQ(json.at("parameters").get_int("total"), total);
  EXPECT_EQ(json.get_int("statistics"), 3 * 2 * 8);
  EXPECT_EQ(json.at("bytes").get_int("weights_f32"), 4 * (total + 3 * 2 * 8));
  const CliResult text = run_heddle({"info", resnet});
  EXPECT_NE(text.out.find("\n  statistics "), text.out.npos) << text.out;
}

TEST_F(Info, missing_model_is_a_data_error) {
  EXPECT_EQ(run_heddle({"info", "/no/such/model"}).exit_code, 3);
}

}  // namespace
}  // namespace heddle::testing
