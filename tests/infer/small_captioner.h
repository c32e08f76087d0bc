// A small captioner with random weights, alone or as a model directory with a tokenizer.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "heddle/infer/loading/loaded_model.h"
#include "heddle/models/captioner.h"
#include "heddle/models/registry.h"
#include "heddle/text/training/tokenizer_trainer.h"
#include "tests/support/cli_runner.h"

namespace heddle::testing {

/// Members of a config, for a decoder that is a Transformer.
inline const std::string kTransformer = R"(, "decoder_type": "transformer", "decoder_layers": 2,
    "decoder_attention_heads": 2, "decoder_ffn_dim": 24)";

/// Has an LSTM unless more members of the config say otherwise.
struct SmallCaptioner {
  nn::Parameters parameters{5};
  std::unique_ptr<Model> made;
  const Captioner* model;

  explicit SmallCaptioner(const std::string& more) {
    made = make_model(nn::Scope(parameters), Json::parse(R"({"model_type": "captioner",
        "vocab_size": 40, "hidden_size": 16, "memory_size": 8,
        "backbone_config": {"model_type": "resnet", "stem": "cifar", "downsample": "pool",
        "layer_type": "plain", "norm": "group", "norm_groups": 2, "embedding_size": 4,
        "hidden_sizes": [8, 8], "depths": [0, 0]})" + more +
                                                         "}"));
    model = made->as<Captioner>();
    for (auto& p : parameters.all()) {  // so that tokens differ, and captions end
      for (int64_t i = 0; i < p->elements(); ++i) p->value().data<float>()[i] *= 2.5f;
      p->changed(true);
    }
  }
};

/// A token a word, w0 to w35.
inline Tokenizer captioner_words() {
  std::vector<std::string> list;
  for (int i = 0; i < 36; ++i) list.push_back(fmt::format("w{}", i));
  return word_list_tokenizer(list);
}

/// Writes it. Its images are squeezed to 24 pixels at the shorter edge, so grids differ.
inline void write_captioner(const std::string& folder, const std::string& more = "") {
  const SmallCaptioner small(more);
  const Tokenizer words = captioner_words();
  save_model(folder, *small.made, small.parameters, {.tokenizer = &words});
  write_file(folder + "/preprocessor_config.json",
             R"({"do_resize": true, "size": {"shortest_edge": 24}, "resample": 2,
                 "do_rescale": true, "rescale_factor": 0.00392156862745098, "do_normalize": true,
                 "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]})");
}

}  // namespace heddle::testing
