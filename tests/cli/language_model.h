// A small GPT-2 with a tokenizer, as a folder, for the tests of commands about language models.
#pragma once

#include "heddle/infer/loading/loaded_model.h"
#include "tests/cli/model_fixture.h"

namespace heddle::testing {

/// Writes it; `generation` is its generation_config.json.
inline void write_language_model(const std::string& folder,
                                 const std::string& generation = R"({"eos_token_id": [3, 9]})",
                                 bool has_tokenizer = true, int64_t positions = 40,
                                 int64_t vocab = 312) {
  nn::Parameters parameters(5);
  Json config = Json::parse(R"({"model_type": "gpt2", "n_embd": 32, "n_layer": 2, "n_head": 4,
                                "initializer_range": 0.3})");
  config["n_positions"] = positions;
  config["vocab_size"] = vocab;
  const auto gpt2 = make_model(nn::Scope(parameters), config);
  save_model(folder, *gpt2, parameters);
  if (has_tokenizer) shared_tokenizer().save(folder + "/tokenizer.model");
  write_file(folder + "/generation_config.json", generation);
}

inline void write_gpt2(const std::string& folder) { write_language_model(folder); }
using LanguageModelFixture = FolderFixture<write_gpt2>;

}  // namespace heddle::testing
