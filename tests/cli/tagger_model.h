// A tagger to ask: random weights, texts of 10 tokens at most, two of them special.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "heddle/infer/loading/loaded_model.h"
#include "tests/cli/page_data.h"

namespace heddle::testing {

inline const std::vector<std::string> kTaggerLabels = {"O", "PER", "LOC"};

inline void write_tagger(const std::string& folder) {
  nn::Parameters parameters(7);
  const auto made = make_model(nn::Scope(parameters), Json::parse(R"({"model_type": "bert",
      "architectures": ["BertForTokenClassification"], "hidden_size": 16, "num_hidden_layers": 1,
      "num_attention_heads": 2, "intermediate_size": 24, "vocab_size": 160,
      "max_position_embeddings": 10, "initializer_range": 0.5,
      "id2label": {"0": "O", "1": "PER", "2": "LOC"}})"));
  save_model(folder, *made, parameters);
  for (const char* name : {"vocab.txt", "tokenizer_config.json"}) {
    std::filesystem::copy_file(text_model("classify") + "/" + name, folder + "/" + name);
  }
}

}  // namespace heddle::testing
