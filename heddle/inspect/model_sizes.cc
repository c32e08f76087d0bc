// Presets, recipes, files and folders by name; a stack that no checkpoint has.
#include "heddle/inspect/model_sizes.h"

#include <algorithm>

#include "heddle/base/files/files.h"
#include "heddle/infer/loading/loaded_model.h"
#include "heddle/models/family.h"
#include "heddle/models/registry.h"
#include "heddle/models/timm/timm.h"
#include "heddle/nn/block.h"
#include "heddle/train/run/run_folder.h"

namespace heddle::inspect {
namespace {

struct PlainStackConfig {
  int64_t layers = 12, heads = 12, d_model = 768, ffn_dim = 3072, vocab_size = 0,
          position_embeddings = 0;
  bool causal = false;

  template <class V>
  void fields(V& v) {
    v("layers", layers, "number of blocks", at_least(1));
    v("heads", heads, "attention heads; must divide d_model", at_least(1));
    v("d_model", d_model, "width of the residual stream", at_least(1));
    v("ffn_dim", ffn_dim, "width inside the feed-forward layers", at_least(1));
    v("vocab_size", vocab_size, "tokens; 0: vectors come in and go out", at_least(0));
    v("position_embeddings", position_embeddings, "learned positions; 0: none", at_least(0));
    v("causal", causal, "a position sees itself and what came before");
  }
  void check(const std::string& source) const { check_heads(d_model, "d_model", heads, source); }
};

class PlainStack final : public LanguageModel {
 public:
  using Config = PlainStackConfig;
  static HubFamily family() { return {.heads = {{Head::next_token, "Stack"}}}; }

  PlainStack(const Scope& s, const Config& c, const HubConfig&)
      : LanguageModel({.vocab_size = std::max<int64_t>(1, c.vocab_size),
                       .max_length = c.position_embeddings > 0 ? c.position_embeddings : kAnyLength,
                       .layers = c.layers,
                       .width = c.d_model}),
        is_causal_(c.causal) {
    const auto table = [&](const char* name, int64_t rows) {
      return rows > 0 ? &(s / name).parameter({rows, c.d_model}, Init::zeros()) : nullptr;
    };
    Parameter *tokens = table("tokens", c.vocab_size),
              *positions = table("positions", c.position_embeddings);
    if (tokens != nullptr) heads_.output.emplace(*tokens);
    const char* const name = tokens != nullptr ? "tokens" : "positions";
    if (tokens == nullptr) std::swap(tokens, positions);
    if (tokens != nullptr) {
      embedding_.emplace(
          name, *tokens,
          positions != nullptr ? nn::Positions::learned(*positions) : nn::Positions::none(),
          nn::Embedding::Options{});
    }
    layers_ = nn::make_layers(s / "layers", c.layers,
                              [&](const Scope& at, int64_t) { return block(at, c); });
  }

  nn::TensorNames names() const override { return {}; }
  bool is_causal() const override { return is_causal_; }

  Tensor hidden(const TokenRows& tokens, const Run& run) const override {
    // Something below learns from the gradient of vectors that come in.
    const Tensor x =
        embedding_
            ? (*embedding_)(tokens, run)
            : Tensor::zeros({std::ssize(tokens.ids), width()}, run.compute).with_leaf(&vectors_);
    return nn::run_blocks("", nn::Residual(x, false), layers_, nullptr, tokens, run);
  }

 private:
  static nn::Block block(const Scope& s, const Config& c) {
    const Scope attention = s / "attention", mlp = s / "mlp";
    return {.attention = {attention.prefix(),
                          Linear(attention, {"q", "k", "v"}, {.in = c.d_model, .out = c.d_model}),
                          Linear(attention / "out", {.in = c.d_model, .out = c.d_model}),
                          {.heads = c.heads, .is_causal = c.causal}},
            .attention_norm = LayerNorm(s / "attention_norm", c.d_model, 1e-5),
            .mlp = nn::FeedForward(mlp.prefix(),
                                   Linear(mlp / "in", {.in = c.d_model, .out = c.ffn_dim}),
                                   Linear(mlp / "out", {.in = c.ffn_dim, .out = c.d_model}), {}),
            .mlp_norm = LayerNorm(s / "norm", c.d_model, 1e-5)};
  }

  bool is_causal_;
  mutable Leaf vectors_;
  std::optional<nn::Embedding> embedding_;
  std::vector<nn::Block> layers_;
};

void apply_settings(const std::vector<Field>& fields, const std::vector<std::string>& settings) {
  for (const std::string& setting : settings) {
    const size_t equals = setting.find('=');
    check(equals != std::string::npos && equals > 0, ErrorKind::usage,
          "`set` {}: FIELD=VALUE is needed, as in `set` d_model=512", setting);
    set_from_string(fields, setting.substr(0, equals), setting.substr(equals + 1));
  }
}

std::unique_ptr<ModelConfig> finish(std::unique_ptr<ModelConfig> config, const std::string& name,
                                    const std::vector<std::string>& settings) {
  apply_settings(config->fields(), settings);
  config->check(name);
  return config;
}

std::unique_ptr<ModelConfig> plain_stack(const std::vector<std::string>& settings) {
  auto config = std::make_unique<ConfigOf<PlainStack>>();
  config->type = "stack";
  apply_settings(config->fields(), settings);
  check_fields(config->own, "stack");
  config->hub.head = config->own.vocab_size > 0 ? Head::next_token : Head::none;
  return finish(std::move(config), "stack", {});
}

// What a run trains.
std::unique_ptr<ModelConfig> size_of_run(const train::TrainConfig& config, const std::string& path,
                                         const std::vector<std::string>& settings) {
  return finish(read_model_config(config.stack.config().json(), path), path, settings);
}

// A file: config.json of a model, heddle's or timm's, or settings of `heddle train --config`.
std::unique_ptr<ModelConfig> size_of_file(const std::string& path,
                                          const std::vector<std::string>& settings) {
  Json json = Json::load(path);
  if (timm::is_config(json)) json = timm::family_config(json, path);
  const Json* type = json.find("model_type");
  if (type == nullptr || json.contains("task")) {
    return size_of_run(train::parse_config(json, path), path, settings);
  }
  return finish(read_model_config(json, path), path, settings);
}

// The vocabulary of those of Vaswani et al. 2017, section 5.1, goes before the settings.
std::unique_ptr<ModelConfig> size_of_preset(const std::string& name,
                                            std::vector<std::string> settings) {
  if (name == "base" || name == "big") settings.insert(settings.begin(), "vocab_size=37000");
  return finish(preset_config(name), name, settings);
}

}  // namespace

std::vector<std::string> size_names() {
  std::vector<std::string> names = model_presets();
  names.emplace_back("stack");
  for (std::string& recipe : train::recipe_names()) names.push_back(std::move(recipe));
  return names;
}

std::unique_ptr<ModelConfig> find_size(const std::string& name,
                                       const std::vector<std::string>& settings) {
  if (std::ranges::count(model_presets(), name) > 0) return size_of_preset(name, settings);
  if (name == "stack") return plain_stack(settings);
  if (std::ranges::count(train::recipe_names(), name) > 0) {
    return size_of_run(train::load_recipe(name), name, settings);
  }
  if (is_directory(name)) {
    // Once a run has a model, that says its sizes: its vocabulary may be less than was asked for.
    const bool has_model = path_exists(join_path(name, kConfigName)) ||
                           path_exists(join_path(join_path(name, "best"), kConfigName));
    if (train::is_run(name) && !has_model) {
      return size_of_run(train::stored_config(name), name, settings);
    }
    return size_of_file(join_path(find_model_dir(name), kConfigName), settings);
  }
  check(path_exists(name), ErrorKind::usage,
        "'{}' is no file, folder or known size{}; the sizes are: {}{}", name,
        did_you_mean(name, size_names()), fmt::join(size_names(), ", "), hub_hint(name));
  return size_of_file(name, settings);
}

}  // namespace heddle::inspect
