// The table of models, a line each, and the sizes that were published.
#include "heddle/models/registry.h"

#include <algorithm>
#include <array>

namespace heddle {

struct ModelEntry {
  const char* type;
  std::unique_ptr<ModelConfig> (*config)();
};

constexpr std::array kModels = {
    ModelEntry{"bart", new_config<class Bart>},
    ModelEntry{"bert", new_config<class Bert>},
    ModelEntry{"captioner", new_config<class ImageCaptioner>},
    ModelEntry{"cct", new_config<class Cct>},
    ModelEntry{"deit", new_config<class Deit>},
    ModelEntry{"detr", new_config<class Detr>},
    ModelEntry{"distilbert", new_config<class DistilBert>},
    ModelEntry{"gpt2", new_config<class Gpt2>},
    ModelEntry{"heddle_transformer", new_config<class HeddleTransformer>},
    ModelEntry{"llama", new_config<class Llama>},
    ModelEntry{"m2m_100", new_config<class M2M100>},
    ModelEntry{"marian", new_config<class Marian>},
    ModelEntry{"mbart", new_config<class MBart>},
    ModelEntry{"mistral", new_config<class Mistral>},
    ModelEntry{"mixtral", new_config<class Mixtral>},
    ModelEntry{"mlp_mixer", new_config<class MlpMixer>},
    ModelEntry{"qwen2", new_config<class Qwen2>},
    ModelEntry{"qwen3", new_config<class Qwen3>},
    ModelEntry{"resnet", new_config<class Resnet>},
    ModelEntry{"rnn_lm", new_config<class RnnLm>},
    ModelEntry{"rnn_seq2seq", new_config<class RnnSeq2Seq>},
    ModelEntry{"roberta", new_config<class Roberta>},
    ModelEntry{"swin", new_config<class Swin>},
    ModelEntry{"t5", new_config<class T5>},
    ModelEntry{"transfo-xl", new_config<class TransformerXl>},
    ModelEntry{"vit", new_config<class Vit>},
    ModelEntry{"xlnet", new_config<class Xlnet>},
};

namespace {

struct Preset {
  const char* name;
  const char* json;
};

// Vaswani et al. 2017, table 3; Radford et al. 2019, table 2; Brown et al. 2020, table 2.1; Devlin
// et al. 2019, section 3; Dosovitskiy et al. 2021, table 1; Touvron et al. 2021, table 1; Liu et
// al. 2021, section 3.3; He et al. 2016, table 1.
constexpr std::array kPresets = {
    Preset{"tiny", R"({"model_type": "heddle_transformer", "encoder_layers": 4, "decoder_layers": 4,
                       "d_model": 128, "encoder_ffn_dim": 256, "decoder_ffn_dim": 256,
                       "encoder_attention_heads": 4, "decoder_attention_heads": 4})"},
    Preset{"base", R"({"model_type": "heddle_transformer", "encoder_layers": 6, "decoder_layers": 6,
                       "d_model": 512, "encoder_ffn_dim": 2048, "decoder_ffn_dim": 2048,
                       "encoder_attention_heads": 8, "decoder_attention_heads": 8})"},
    Preset{"big", R"({"model_type": "heddle_transformer", "encoder_layers": 6, "decoder_layers": 6,
                      "d_model": 1024, "encoder_ffn_dim": 4096, "decoder_ffn_dim": 4096,
                      "encoder_attention_heads": 16, "decoder_attention_heads": 16,
                      "dropout": 0.3, "embedding_dropout": 0.3})"},
    Preset{"gpt2", R"({"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12})"},
    Preset{"gpt2-medium", R"({"model_type": "gpt2", "n_layer": 24, "n_embd": 1024, "n_head": 16})"},
    Preset{"gpt2-large", R"({"model_type": "gpt2", "n_layer": 36, "n_embd": 1280, "n_head": 20})"},
    Preset{"gpt2-xl", R"({"model_type": "gpt2", "n_layer": 48, "n_embd": 1600, "n_head": 25})"},
    Preset{"gpt3", R"({"model_type": "gpt2", "n_layer": 96, "n_embd": 12288, "n_head": 96,
                       "n_positions": 2048})"},
    Preset{"bert-base", R"({"model_type": "bert", "num_hidden_layers": 12, "hidden_size": 768,
                            "num_attention_heads": 12, "intermediate_size": 3072})"},
    Preset{"bert-large", R"({"model_type": "bert", "num_hidden_layers": 24, "hidden_size": 1024,
                             "num_attention_heads": 16, "intermediate_size": 4096})"},
    Preset{"vit-base", R"({"model_type": "vit", "num_hidden_layers": 12, "hidden_size": 768,
                           "num_attention_heads": 12, "intermediate_size": 3072})"},
    Preset{"vit-large", R"({"model_type": "vit", "num_hidden_layers": 24, "hidden_size": 1024,
                            "num_attention_heads": 16, "intermediate_size": 4096})"},
    Preset{"deit-small", R"({"model_type": "deit", "num_hidden_layers": 12, "hidden_size": 384,
                             "num_attention_heads": 6, "intermediate_size": 1536})"},
    Preset{"swin-tiny", R"({"model_type": "swin", "embed_dim": 96, "depths": [2, 2, 6, 2],
                            "num_heads": [3, 6, 12, 24], "window_size": 7})"},
    Preset{"resnet50", R"({"model_type": "resnet", "layer_type": "bottleneck",
                           "hidden_sizes": [256, 512, 1024, 2048], "depths": [3, 4, 6, 3]})"},
};

}  // namespace

std::vector<std::string> model_types() {
  std::vector<std::string> types;
  for (const ModelEntry& entry : kModels) types.emplace_back(entry.type);
  return types;
}

std::unique_ptr<ModelConfig> model_config(const std::string& type, const std::string& source) {
  for (const ModelEntry& entry : kModels) {
    if (type != entry.type) continue;
    auto config = entry.config();
    config->type = type;
    config->hub.head = config->heads()[0].head;
    return config;
  }
  fail(ErrorKind::data, "{}model_type is '{}'; heddle knows {}{}",
       source.empty() ? "" : source + ": ", type, fmt::join(model_types(), ", "),
       did_you_mean(type, model_types()));
}

std::unique_ptr<ModelConfig> read_model_config(const Json& json, const std::string& source) {
  auto config = model_config(json.get_string("model_type", source), source);
  config->read(json, source);
  return config;
}

std::string default_model_type(Head head) {
  switch (head) {
    case Head::target_token: return "heddle_transformer";
    case Head::next_token: return "gpt2";
    case Head::ordered_token: return "xlnet";
    case Head::image_classes: return "vit";
    case Head::distilled_classes: return "deit";
    case Head::objects: return "detr";
    case Head::caption: return "captioner";
    case Head::none: break;
    default: return "bert";
  }
  fail(ErrorKind::internal, "no type of model is the default of no head");
}

std::string class_of_head(Head head) {
  const std::vector<HeadClass> all = model_config(default_model_type(head))->heads();
  return std::ranges::find(all, head, &HeadClass::head)->name;
}

std::vector<std::string> model_presets() {
  std::vector<std::string> names;
  for (const Preset& preset : kPresets) names.emplace_back(preset.name);
  return names;
}

std::unique_ptr<ModelConfig> preset_config(const std::string& name) {
  return read_model_config(preset_sizes(name), name);
}

Json preset_sizes(const std::string& name) {
  for (const Preset& preset : kPresets) {
    if (name == preset.name) return Json::parse(preset.json);
  }
  fail(ErrorKind::usage, "'{}' is no known size of a model{}; the sizes are: {}", name,
       did_you_mean(name, model_presets()), fmt::join(model_presets(), ", "));
}

std::unique_ptr<Model> make_model(const nn::Scope& s, const Json& json, const std::string& source) {
  return read_model_config(json, source)->make(s);
}

}  // namespace heddle
