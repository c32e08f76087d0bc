// Plans from configs, and their numbers of parameters.
#include "heddle/inspect/model_plan.h"

#include <algorithm>

#include "heddle/base/files.h"
#include "heddle/infer/model_dir.h"
#include "heddle/infer/stack_model.h"
#include "heddle/train/run_folder.h"

namespace heddle::inspect {
namespace {

// ReLU knows from its output what it was given; the others do not.
bool keeps_before(const std::string& activation) { return activation != "relu"; }

struct Published {
  const char* name;
  int64_t layers, width, heads, context;
};

// Radford et al. 2019, table 2; Brown et al. 2020, table 2.1.
constexpr Published kGpts[] = {{"gpt2", 12, 768, 12, 1024},
                               {"gpt2-medium", 24, 1024, 16, 1024},
                               {"gpt2-large", 36, 1280, 20, 1024},
                               {"gpt2-xl", 48, 1600, 25, 1024},
                               {"gpt3", 96, 12288, 96, 2048}};
// Devlin et al. 2019, section 3.
constexpr Published kBerts[] = {{"bert-base", 12, 768, 12, 512}, {"bert-large", 24, 1024, 16, 512}};

template <class Config>
void apply(Config& config, const std::vector<std::string>& settings) {
  for (const std::string& setting : settings) {
    const size_t equals = setting.find('=');
    check(equals != std::string::npos && equals > 0, ErrorKind::usage,
          "--set {}: FIELD=VALUE is needed, as in --set d_model=512", setting);
    set_from_string(config, setting.substr(0, equals), setting.substr(equals + 1));
  }
}

template <class Config>
ModelPlan finish(Config config, const std::string& name, const std::vector<std::string>& settings) {
  apply(config, settings);
  check_fields(config, name);
  if constexpr (requires { config.check(name); }) config.check(name);
  ModelPlan plan = plan_of(config);
  plan.name = name;
  return plan;
}

Gpt2Config gpt(const Published& p) {
  Gpt2Config c;
  c.n_layer = p.layers, c.n_embd = p.width, c.n_head = p.heads, c.n_positions = p.context;
  return c;
}

BertConfig bert(const Published& p) {
  BertConfig c;
  c.num_hidden_layers = p.layers, c.hidden_size = p.width, c.num_attention_heads = p.heads;
  c.intermediate_size = 4 * p.width;
  return c;
}

// Keys that are not the config's are passed over: they change no sizes.
template <class Config>
ModelPlan from_file(const Json& json, const std::string& path,
                    const std::vector<std::string>& settings) {
  Config config;
  (void)from_json(config, json, path);
  return finish(config, path, settings);
}

// A file: config.json of a model, or settings of `heddle train --config`.
ModelPlan plan_of_file(const std::string& path, const std::vector<std::string>& settings) {
  const Json json = Json::load(path);
  const Json* type = json.find("model_type");
  if (type == nullptr) return finish(train::parse_config(json, path).model, path, settings);
  const std::string& name = type->as_string(path + ": key 'model_type'");
  if (name == kTransformerType) return from_file<TransformerConfig>(json, path, settings);
  if (name == "gpt2") return from_file<Gpt2Config>(json, path, settings);
  if (name == "bert") return from_file<BertConfig>(json, path, settings);
  fail(ErrorKind::data, "{}: model_type is '{}'; heddle analyzes {}, gpt2 and bert", path, name,
       kTransformerType);
}

TransformerConfig preset(const std::string& name) {
  train::TrainConfig config;
  train::apply_preset(config, name);
  if (name != "tiny") config.model.vocab_size = 37000;  // Vaswani et al. 2017, section 5.1
  return config.model;
}

bool holds(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

ModelPlan plan_of(const TransformerConfig& c) {
  // Their sums differ; a number that is wrong helps nobody.
  check(c.activation_function != "swiglu", ErrorKind::usage,
        "heddle analyze does not know the cost of activation_function swiglu yet");
  check(c.attention_scoring == "scaled_dot" || c.attention_scoring == "dot", ErrorKind::usage,
        "heddle analyze does not know the cost of attention_scoring {} yet", c.attention_scoring);
  const int64_t positions = c.position_embedding_type == "learned" ? c.max_position_embeddings : 0;
  StackPlan encoder{.name = "encoder",
                    .layers = c.encoder_layers,
                    .heads = c.encoder_attention_heads,
                    .width = c.d_model,
                    .hidden = c.encoder_ffn_dim,
                    .has_bias = c.projection_bias,
                    .keeps_before_activation = keeps_before(c.activation_function),
                    .has_last_norm = c.normalize_before,
                    .word_rows = c.vocab_size,
                    .position_rows = positions,
                    .has_embedding_norm = c.normalize_embedding};
  StackPlan decoder = encoder;
  decoder.name = "decoder";
  decoder.layers = c.decoder_layers;
  decoder.heads = c.decoder_attention_heads;
  decoder.hidden = c.decoder_ffn_dim;
  decoder.is_causal = decoder.has_cross = true;
  decoder.word_rows = c.share_encoder_decoder_embeddings ? 0 : c.target_vocab_size();
  return {.name = kTransformerType,
          .type = kTransformerType,
          .stacks = {encoder, decoder},
          .vocab = c.target_vocab_size(),
          .is_output_tied = c.tie_word_embeddings,
          .has_output_bias = c.output_bias};
}

ModelPlan plan_of(const Gpt2Config& c) {
  const StackPlan stack{.name = "stack",
                        .layers = c.n_layer,
                        .heads = c.n_head,
                        .width = c.n_embd,
                        .hidden = c.n_inner.value_or(4 * c.n_embd),
                        .is_causal = true,
                        .keeps_before_activation = keeps_before(c.activation_function),
                        .has_last_norm = true,
                        .word_rows = c.vocab_size,
                        .position_rows = c.n_positions};
  return {.name = "gpt2",
          .type = "gpt2",
          .stacks = {stack},
          .vocab = c.vocab_size,
          .is_output_tied = c.tie_word_embeddings};
}

ModelPlan plan_of(const BertConfig& c) {
  const StackPlan stack{.name = "stack",
                        .layers = c.num_hidden_layers,
                        .heads = c.num_attention_heads,
                        .width = c.hidden_size,
                        .hidden = c.intermediate_size,
                        .keeps_before_activation = keeps_before(c.hidden_act),
                        .word_rows = c.vocab_size,
                        .position_rows = c.max_position_embeddings,
                        .type_rows = c.type_vocab_size,
                        .has_embedding_norm = true};
  return {.name = "bert", .type = "bert", .stacks = {stack}, .has_pooler = true};
}

ModelPlan plan_of(const StackConfig& c) {
  check(c.d_model % c.heads == 0, ErrorKind::data,
        "stack: d_model {} is not divisible by {} heads; choose a number of heads that divides it",
        c.d_model, c.heads);
  const StackPlan stack{.name = "stack",
                        .layers = c.layers,
                        .heads = c.heads,
                        .width = c.d_model,
                        .hidden = c.ffn_dim,
                        .is_causal = c.causal,
                        .word_rows = c.vocab_size,
                        .position_rows = c.position_embeddings};
  return {.name = "stack", .type = "stack", .stacks = {stack}, .vocab = c.vocab_size};
}

std::vector<std::string> plan_names() {
  std::vector<std::string> names = {"tiny", "base", "big"};
  for (const Published& p : kGpts) names.emplace_back(p.name);
  for (const Published& p : kBerts) names.emplace_back(p.name);
  names.emplace_back("stack");
  for (std::string& recipe : train::recipe_names()) names.push_back(std::move(recipe));
  return names;
}

ModelPlan find_plan(const std::string& name, const std::vector<std::string>& settings) {
  for (const Published& p : kGpts) {
    if (name == p.name) return finish(gpt(p), name, settings);
  }
  for (const Published& p : kBerts) {
    if (name == p.name) return finish(bert(p), name, settings);
  }
  if (name == "stack") return finish(StackConfig(), name, settings);
  if (name == "tiny" || name == "base" || name == "big") {
    return finish(preset(name), name, settings);
  }
  if (holds(train::recipe_names(), name)) {
    return finish(train::load_recipe(name).model, name, settings);
  }
  if (is_directory(name)) {
    if (train::is_run(name) && !path_exists(join_path(name, kConfigName))) {
      return finish(train::stored_config(name).model, name, settings);
    }
    return plan_of_file(join_path(find_model_dir(name), kConfigName), settings);
  }
  check(path_exists(name), ErrorKind::usage,
        "'{}' is no file, folder or known size{}; the sizes are: {}", name,
        did_you_mean(name, plan_names()), fmt::join(plan_names(), ", "));
  return plan_of_file(name, settings);
}

int64_t linear_parameters(int64_t in, int64_t out, bool has_bias) {
  return in * out + (has_bias ? out : 0);
}

int64_t layer_parameters(const StackPlan& s) {
  const int64_t attention = 4 * linear_parameters(s.width, s.width, s.has_bias);
  const int64_t norm = 2 * s.width;
  const int64_t sublayers = s.has_cross ? 3 : 2;
  return (s.has_cross ? 2 : 1) * attention + linear_parameters(s.width, s.hidden, true) +
         linear_parameters(s.hidden, s.width, true) + sublayers * norm;
}

int64_t embedding_parameters(const StackPlan& s) {
  const int64_t norms = (s.has_embedding_norm ? 1 : 0) + (s.has_last_norm ? 1 : 0);
  return (s.word_rows + s.position_rows + s.type_rows + 2 * norms) * s.width;
}

int64_t output_parameters(const ModelPlan& plan) {
  const int64_t width = plan.stacks.back().width;
  int64_t count = plan.is_output_tied ? 0 : plan.vocab * width;
  if (plan.has_output_bias) count += plan.vocab;
  if (plan.has_pooler) count += linear_parameters(width, width, true);
  return count;
}

int64_t model_parameters(const ModelPlan& plan) {
  int64_t count = output_parameters(plan);
  for (const StackPlan& s : plan.stacks) {
    count += embedding_parameters(s) + s.layers * layer_parameters(s);
  }
  return count;
}

}  // namespace heddle::inspect
