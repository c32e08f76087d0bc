// Reading, checking and comparing what a run is told.
#include "heddle/train/config.h"

#include <algorithm>
#include <array>
#include <span>

#include "heddle/base/files/files.h"
#include "heddle/text/strings/strings.h"
#include "heddle/train/run/recipes.h"

namespace heddle::train {
namespace {

// What a task trains: models of the registry with this head.
struct TaskEntry {
  const char* name;
  Head head;
  const char* scores;  // words between commas
  int64_t updates;     // of a run that is given no limit
};

constexpr std::array kTasks = {
    TaskEntry{"translation", Head::target_token, "loss,bleu", 20'000},
    TaskEntry{"causal_lm", Head::next_token, "loss", 5'000},
    TaskEntry{"masked_lm", Head::masked_token, "loss,accuracy", 10'000},
    TaskEntry{"permutation_lm", Head::ordered_token, "loss,accuracy", 10'000},
    TaskEntry{"sequence_classification", Head::sequence_classes, "loss,accuracy,macro_f1", 3'000},
    TaskEntry{"token_classification", Head::token_classes, "loss,accuracy,macro_f1", 3'000}};

const TaskEntry& find_task(const std::string& name) {
  for (const TaskEntry& entry : kTasks) {
    if (name == entry.name) return entry;
  }
  fail(ErrorKind::usage, "there is no task '{}'{}; the tasks are: {}", name,
       did_you_mean(name, task_names()), fmt::join(task_names(), ", "));
}

// "tiny, base or big"
std::string choice_of(const std::vector<std::string>& names) {
  if (names.empty()) return "none";
  const auto before = std::span(names).first(names.size() - 1);
  return fmt::format("{}{}{}", fmt::join(before, ", "), before.empty() ? "" : " or ", names.back());
}

}  // namespace

Head TrainConfig::head() const { return find_task(task).head; }

OptimizerOptions TrainConfig::optimizer_options() const {
  return {.decoupled_decay = optimizer == "adamw",
          .beta1 = adam_beta1,
          .beta2 = adam_beta2,
          .eps = adam_epsilon,
          .weight_decay = weight_decay,
          .ema_decay = ema_decay};
}

ScheduleOptions TrainConfig::schedule_options() const {
  return {.kind = schedule,
          .learning_rate = learning_rate,
          .min_learning_rate = min_learning_rate,
          .warmup = warmup_updates,
          .max_updates = max_updates,
          .d_model = stack.width()};
}

void TrainConfig::check(const std::string& source) const {
  try {
    check_fields(*this, source);
    if (head() == Head::target_token) stack.config().check(source);
  } catch (const Error& e) {
    fail(ErrorKind::usage, "{}", e.what());  // what a run is told, not a file that was read
  }
  heddle::check(
      target_tokenizer.empty() || stack.integer({"decoder_vocab_size"}) > 0, ErrorKind::usage,
      "{}: target_tokenizer gives the target tokens of its own; set decoder_vocab_size to "
      "their number",
      source);
  heddle::check(max_updates > 0 || max_minutes > 0, ErrorKind::usage,
                "{}: the run has no end; give --max-updates or --max-minutes", source);
  heddle::check(max_updates > 0 || (schedule != "cosine" && schedule != "linear"), ErrorKind::usage,
                "{}: schedule {} falls until max_updates; give --max-updates", source, schedule);
  heddle::check(lora_rank == 0 || (train_only.empty() && freeze.empty()), ErrorKind::usage,
                "{}: adapters (lora_rank) leave all weights as they are; leave out train_only and "
                "freeze",
                source);
  if (head() != Head::target_token) return;
  heddle::check(max_tokens <= batch_tokens, ErrorKind::usage,
                "{}: max_tokens {} is more than a batch of {} tokens; raise --batch-tokens or "
                "lower --max-tokens",
                source, max_tokens, batch_tokens);
  const int64_t positions = facts_of(stack).longest_target;
  heddle::check(max_tokens <= positions, ErrorKind::usage,
                "{}: max_tokens {} is more than the {} learned positions", source, max_tokens,
                positions);
}

bool is_limit(const std::string& key) {
  constexpr std::array kLimits = {"max_updates", "max_minutes", "patience", "recompute"};
  return std::find(kLimits.begin(), kLimits.end(), key) != kLimits.end();
}

std::vector<std::string> task_names() {
  std::vector<std::string> names;
  for (const TaskEntry& entry : kTasks) names.emplace_back(entry.name);
  return names;
}

std::vector<std::string> trainable_types(const std::string& task) {
  const TaskEntry& entry = find_task(task);
  std::vector<std::string> types = {default_model_type(entry.head)};
  for (const std::string& type : model_types()) {
    const std::vector<HeadClass> heads = model_config(type)->heads();
    const bool has_head = std::any_of(heads.begin(), heads.end(),
                                      [&](const HeadClass& h) { return h.head == entry.head; });
    if (has_head && type != types[0]) types.push_back(type);
  }
  return types;
}

std::vector<std::string> score_names(const std::string& task) {
  return split_at_commas(find_task(task).scores);
}

std::string task_of_type(const std::string& model_type) {
  for (const TaskEntry& entry : kTasks) {
    const std::vector<std::string> types = trainable_types(entry.name);
    if (std::find(types.begin(), types.end(), model_type) != types.end()) return entry.name;
  }
  fail(ErrorKind::usage, "no task trains a {}", model_type);
}

std::string task_of_head(Head head) {
  for (const TaskEntry& entry : kTasks) {
    if (head != Head::none && head == entry.head) return entry.name;
  }
  return "";
}

bool set_default_end(TrainConfig& config) {
  if (config.max_updates > 0 || config.max_minutes > 0) return false;
  config.max_updates = find_task(config.task).updates;
  return true;
}

TrainConfig default_config(const std::string& task, const std::string& model_type) {
  TrainConfig config;
  const std::vector<std::string> types = trainable_types(task);
  config.task = task;
  config.model_type = model_type.empty() ? types[0] : model_type;
  check(std::find(types.begin(), types.end(), config.model_type) != types.end(), ErrorKind::usage,
        "task {} trains no {}; choose {}", task, model_type, fmt::join(types, ", "));
  config.stack = StackConfig(config.model_type);
  if (config.head() == Head::target_token) return config;
  config.optimizer = "adamw";  // GPT-2's and BERT's, but for the rate
  config.schedule = "cosine";
  config.tokenizer_type = task == "causal_lm"        ? "char"
                          : task == "permutation_lm" ? "unigram"
                                                     : "wordpiece";
  config.warmup_updates = 100;
  config.adam_beta2 = 0.99;
  config.adam_epsilon = 1e-8;
  config.weight_decay = 0.1;
  config.clip_norm = 1;
  config.label_smoothing = 0;
  if (task == "causal_lm" && config.stack.integer({"mem_len"}) >= 0) {  // Transformer-XL
    config.sampling = "streams";
    config.block_size = 64;
    set_field(config.stack.fields(), "cutoffs", "");  // the published ones are of its vocabulary
  }
  if (task == "permutation_lm") config.block_size = 64;
  return config;
}

void apply_preset(TrainConfig& config, const std::string& name) {
  const std::vector<std::string> names = model_presets();
  std::vector<std::string> own;
  for (const std::string& known : names) {
    if (preset_sizes(known).get_string("model_type") == config.model_type) own.push_back(known);
  }
  check(std::find(names.begin(), names.end(), name) != names.end(), ErrorKind::usage,
        "there is no preset '{}'{}; choose {}", name, did_you_mean(name, names), choice_of(own));
  const Json sizes = preset_sizes(name);
  const std::string& type = sizes.get_string("model_type");
  check(type == config.model_type, ErrorKind::usage,
        "preset {} is a {}, but model_type is {}; give --model-type {}", name, type,
        config.model_type, type);
  static_cast<void>(read_fields(config.stack.fields(), sizes, name));
}

std::vector<std::string> recipe_names() {
  std::vector<std::string> names;
  for (const Recipe& recipe : recipes()) names.emplace_back(recipe.name);
  return names;
}

TrainConfig load_recipe(const std::string& name) {
  for (const Recipe& recipe : recipes()) {
    if (recipe.name == name) {
      return parse_config(Json::parse(recipe.json, "recipe " + name), "recipe " + name);
    }
  }
  fail(ErrorKind::usage, "there is no recipe '{}'{}; the recipes are: {}", name,
       did_you_mean(name, recipe_names()), fmt::join(recipe_names(), ", "));
}

TrainConfig load_config(const std::string& path) { return parse_config(Json::load(path), path); }

TrainConfig parse_config(const Json& json, const std::string& source) {
  Json fields = json;
  const auto text = [&](const char* key, const char* otherwise) -> std::string {
    const Json* found = fields.find(key);
    return found == nullptr ? otherwise
                            : found->as_string(fmt::format("{}: key '{}'", source, key));
  };
  TrainConfig config = default_config(text("task", "translation"), text("model_type", ""));
  if (const Json* preset = fields.find("preset")) {
    apply_preset(config, preset->as_string(source + ": key 'preset'"));
    fields.erase("preset");
  }
  fields.erase("description");
  const std::vector<std::string> unknown = from_json(config, fields, source);
  std::vector<std::string> known;
  for (const FieldInfo& field : list_fields(config)) known.push_back(field.key);
  check(unknown.empty(), ErrorKind::data, "{}: unknown key '{}'{}", source,
        unknown.empty() ? "" : unknown[0], unknown.empty() ? "" : did_you_mean(unknown[0], known));
  return config;
}

}  // namespace heddle::train
