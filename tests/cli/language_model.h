// A small GPT-2 with a tokenizer, as a folder, for the tests of commands about language models.
#pragma once

#include "heddle/base/json.h"
#include "heddle/infer/stack_model.h"
#include "tests/cli/model_fixture.h"

namespace heddle::testing {

/// Writes it; `generation` is its generation_config.json.
inline void write_language_model(const std::string& folder,
                                 const std::string& generation = R"({"eos_token_id": [3, 9]})",
                                 bool has_tokenizer = true) {
  nn::Parameters parameters(5);
  const auto gpt2 = make_model(
      nn::Scope(parameters),
      Json::parse(R"({"model_type": "gpt2", "vocab_size": 312, "n_positions": 40, "n_embd": 32,
                      "n_layer": 2, "n_head": 4, "initializer_range": 0.3})"));
  save_stack_model(folder, *gpt2, parameters);
  if (has_tokenizer) shared_tokenizer().save(folder + "/tokenizer.model");
  write_file(folder + "/generation_config.json", generation);
}

class LanguageModelFixture : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TempDir>();
    write_language_model(model());
  }
  static void TearDownTestSuite() { folder_.reset(); }
  static std::string model() { return (*folder_ / "model").string(); }

  static CliOptions with_input(const std::string& text) {
    CliOptions options;
    options.input = text;
    return options;
  }
  static std::vector<Json> json_lines(const std::string& text) {
    std::vector<Json> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(Json::parse(line));
    return lines;
  }

 private:
  static inline std::unique_ptr<TempDir> folder_;
};

}  // namespace heddle::testing
