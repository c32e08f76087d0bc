// Plans from configs, and their numbers of parameters.
#include "heddle/inspect/model_plan.h"

#include <algorithm>

#include "heddle/base/files/files.h"
#include "heddle/infer/loading/hub_hint.h"
#include "heddle/infer/loading/model_dir.h"
#include "heddle/train/run/run_folder.h"

namespace heddle::inspect {
namespace {

void apply_settings(const std::vector<Field>& fields, const std::vector<std::string>& settings) {
  for (const std::string& setting : settings) {
    const size_t equals = setting.find('=');
    check(equals != std::string::npos && equals > 0, ErrorKind::usage,
          "`set` {}: FIELD=VALUE is needed, as in `set` d_model=512", setting);
    set_from_string(fields, setting.substr(0, equals), setting.substr(equals + 1));
  }
}

ModelPlan finish(PlainStackConfig config, const std::string& name,
                 const std::vector<std::string>& settings) {
  apply_settings(FieldList(config), settings);
  check_fields(config, name);
  ModelPlan plan = plan_of(config);
  plan.name = name;
  return plan;
}

// The same of a family of the registry.
ModelPlan finish(ModelConfig& config, const std::string& name,
                 const std::vector<std::string>& settings) {
  apply_settings(config.fields(), settings);
  config.check(name);
  ModelPlan plan = plan_of(config);
  plan.name = name;
  return plan;
}

// What a run trains.
ModelPlan plan_of_run(const train::TrainConfig& config, const std::string& path,
                      const std::vector<std::string>& settings) {
  train::StackConfig stack = config.stack;
  return finish(stack.config(), path, settings);
}

// A file: config.json of a model, or settings of `heddle train --config`.
ModelPlan plan_of_file(const std::string& path, const std::vector<std::string>& settings) {
  const Json json = Json::load(path);
  const Json* type = json.find("model_type");
  if (type == nullptr || json.contains("task")) {
    return plan_of_run(train::parse_config(json, path), path, settings);
  }
  return finish(*read_model_config(json, path), path, settings);
}

// The vocabulary of those of Vaswani et al. 2017, section 5.1, goes before the settings.
ModelPlan plan_of_preset(const std::string& name, std::vector<std::string> settings) {
  if (name == "base" || name == "big") settings.insert(settings.begin(), "vocab_size=37000");
  return finish(*preset_config(name), name, settings);
}

bool holds(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

ModelPlan plan_of(const ModelConfig& config) {
  auto unmade = nn::Parameters::shapes_alone();
  ModelPlan plan = config.make(nn::Scope(unmade))->plan();
  plan.name = plan.type = config.type;
  return plan;
}

ModelPlan plan_of(const PlainStackConfig& c) {
  check(c.d_model % c.heads == 0, ErrorKind::data,
        "stack: d_model {} is not divisible by {} heads; choose a number of heads that divides it",
        c.d_model, c.heads);
  const StackPlan stack{.name = "stack",
                        .layers = c.layers,
                        .heads = c.heads,
                        .width = c.d_model,
                        .hidden = c.ffn_dim,
                        .is_causal = c.causal,
                        .token_rows = c.vocab_size,
                        .position_rows = c.position_embeddings};
  return {.name = "stack", .type = "stack", .stacks = {stack}, .vocab = c.vocab_size};
}

std::vector<std::string> plan_names() {
  std::vector<std::string> names = model_presets();
  names.emplace_back("stack");
  for (std::string& recipe : train::recipe_names()) names.push_back(std::move(recipe));
  return names;
}

ModelPlan find_plan(const std::string& name, const std::vector<std::string>& settings) {
  if (holds(model_presets(), name)) return plan_of_preset(name, settings);
  if (name == "stack") return finish(PlainStackConfig(), name, settings);
  if (holds(train::recipe_names(), name)) {
    return plan_of_run(train::load_recipe(name), name, settings);
  }
  if (is_directory(name)) {
    // Once a run has a model, that says its sizes: its vocabulary may be less than was asked for.
    const bool has_model = path_exists(join_path(name, kConfigName)) ||
                           path_exists(join_path(join_path(name, "best"), kConfigName));
    if (train::is_run(name) && !has_model) {
      return plan_of_run(train::stored_config(name), name, settings);
    }
    return plan_of_file(join_path(find_model_dir(name), kConfigName), settings);
  }
  check(path_exists(name), ErrorKind::usage,
        "'{}' is no file, folder or known size{}; the sizes are: {}{}", name,
        did_you_mean(name, plan_names()), fmt::join(plan_names(), ", "), hub_hint(name));
  return plan_of_file(name, settings);
}

int64_t linear_parameters(int64_t in, int64_t out, bool has_bias) {
  return in * out + (has_bias ? out : 0);
}

int64_t distance_parameters(const StackPlan& s) {
  return s.has_distances ? s.width * s.query_width() + s.of_attention.all() : 0;
}

int64_t head_norm_parameters(const StackPlan& s) {
  return s.has_distances ? 0 : s.of_attention.all();
}

int64_t layer_parameters(const StackPlan& s) {
  const int64_t attention = linear_parameters(s.width, s.query_width(), s.has_bias) +
                            2 * linear_parameters(s.width, s.key_width(), s.has_bias) +
                            linear_parameters(s.query_width(), s.width, s.has_projection_bias) +
                            s.score_weights() + head_norm_parameters(s) + distance_parameters(s);
  const int64_t mlp = (s.is_gated ? 2 : 1) * linear_parameters(s.width, s.hidden, s.has_mlp_bias) +
                      linear_parameters(s.hidden, s.width, s.has_mlp_bias);
  const int64_t router = s.experts * s.width;
  const int64_t sublayers = s.has_cross ? 3 : 2;
  return (s.has_cross ? 2 : 1) * attention + std::max<int64_t>(1, s.experts) * mlp + router +
         sublayers * s.norm();
}

int64_t embedding_parameters(const StackPlan& s) {
  const int64_t norms = (s.has_embedding_norm ? 1 : 0) + (s.has_last_norm ? 1 : 0);
  return (s.token_rows + s.position_rows + s.type_rows) * s.width + norms * s.norm() +
         s.of_input.all();
}

int64_t output_parameters(const ModelPlan& plan) {
  const int64_t width = plan.stacks.back().width;
  int64_t count = plan.is_output_tied ? 0 : plan.vocab * width;
  if (plan.has_output_bias) count += plan.vocab;
  count += plan.of_output.all();
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
