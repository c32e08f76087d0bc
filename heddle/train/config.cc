// The table of tasks; reading, checking and comparing what a run is told.
#include "heddle/train/config.h"

#include <algorithm>
#include <array>
#include <span>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/base/names.h"
#include "heddle/dist/group.h"
#include "heddle/models/registry.h"
#include "heddle/text/strings/strings.h"

namespace heddle::train {

template <Head head>
class ClassTask;

struct TaskEntry {
  const char* name;
  std::unique_ptr<TaskFields> (*fields)();
};

constexpr std::array kTasks = {
    TaskEntry{"translation", new_fields<class TranslationTask>},
    TaskEntry{"causal_lm", new_fields<class LanguageTask>},
    TaskEntry{"masked_lm", new_fields<class MaskedTask>},
    TaskEntry{"permutation_lm", new_fields<class PermutationTask>},
    TaskEntry{"sequence_classification", new_fields<ClassTask<Head::sequence_classes>>},
    TaskEntry{"token_classification", new_fields<ClassTask<Head::token_classes>>},
    TaskEntry{"image_classification", new_fields<class ImageTask>},
    TaskEntry{"object_detection", new_fields<class DetectionTask>},
    TaskEntry{"captioning", new_fields<class CaptionTask>},
};

TaskConfig::TaskConfig(const std::string& task) {
  for (const TaskEntry& entry : kTasks) {
    if (task == entry.name) fields_ = entry.fields();
  }
  check(fields_ != nullptr, ErrorKind::usage, "there is no task '{}'{}; the tasks are: {}", task,
        did_you_mean(task, task_names()), fmt::join(task_names(), ", "));
}

std::vector<std::string> task_names() {
  std::vector<std::string> names;
  for (const TaskEntry& entry : kTasks) names.emplace_back(entry.name);
  return names;
}

std::vector<std::string> trainable_types(Head head) {
  std::vector<std::string> types = {default_model_type(head)};
  for (const std::string& type : model_types()) {
    const std::vector<HeadClass> heads = model_config(type)->heads();
    const bool has_head = std::ranges::count(heads, head, &HeadClass::head) > 0;
    if (has_head && type != types[0]) types.push_back(type);
  }
  return types;
}

std::string task_of_type(const std::string& model_type) {
  for (const TaskEntry& entry : kTasks) {
    const std::vector<std::string> types = trainable_types(entry.fields()->facts().head);
    if (std::find(types.begin(), types.end(), model_type) != types.end()) return entry.name;
  }
  fail(ErrorKind::usage, "no task trains a {}", model_type);
}

std::string task_of_head(Head head) {
  if (head == Head::distilled_classes) head = Head::image_classes;
  for (const TaskEntry& entry : kTasks) {
    if (head != Head::none && head == entry.fields()->facts().head) return entry.name;
  }
  return "";
}

namespace {

struct Recipe {
  std::string_view name;  // "multi30k-en-de"
  std::string_view json;
};

// The recipes of recipes/*.json, by name.
constexpr auto kRecipes = std::to_array<Recipe>({
#include "recipes.inc"  // written by CMakeLists.txt
});

// "tiny, base or big"
std::string choice_of(const std::vector<std::string>& names) {
  if (names.empty()) return "none";
  const auto before = std::span(names).first(names.size() - 1);
  return fmt::format("{}{}{}", fmt::join(before, ", "), before.empty() ? "" : " or ", names.back());
}

}  // namespace

StackConfig& StackConfig::operator=(const StackConfig& other) {
  if (this == &other) return *this;
  config_ = model_config(other.type());
  config_->hub = other.config_->hub;
  static_cast<void>(from_json(config_->fields(), to_json(other.fields()), other.type()));
  return *this;
}

int64_t StackConfig::integer(std::initializer_list<const char*> keys) const {
  const std::vector<Field> all = fields();
  for (const char* key : keys) {
    for (const Field& f : all) {
      const auto* const member = std::get_if<int64_t*>(&f.member);
      if (f.key == key && member != nullptr) return **member;
    }
  }
  return -1;
}

int64_t StackConfig::width() const {
  for (const Field& f : fields()) {
    const auto* const stages = std::get_if<std::vector<int64_t>*>(&f.member);
    if (f.key == "hidden_sizes" && stages != nullptr && !(*stages)->empty()) {
      return (*stages)->back();
    }
  }
  return integer({"n_embd", "hidden_size", "d_model", "dim", "embed_dim"});
}

void StackConfig::set(const std::string& key, int64_t value) {
  set_from_string(fields(), key, std::to_string(value));
}

std::vector<std::string> TrainConfig::score_names() const {
  return split_at_commas(task_config->facts().scores);
}

OptimizerOptions TrainConfig::optimizer_options() const {
  const bool is_muon = optimizer == "muon";
  return {.is_sgd = optimizer.starts_with("sgd"),
          .is_muon = is_muon,
          .decoupled_decay = is_muon || optimizer.ends_with("w"),
          .momentum = momentum,
          .nesterov = nesterov,
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
    task_config->check_fit(*this, source);
  } catch (const Error& e) {
    fail(ErrorKind::usage, "{}", e.what());  // what a run is told, not a file that was read
  }
  heddle::check(dist::is_rank_count(shards), ErrorKind::usage, "{}: `shards` {} is no power of two",
                source, shards);
  heddle::check(
      adam_epsilon >= 1e-30 || optimizer.starts_with("sgd"), ErrorKind::usage,
      "{}: `adam_epsilon` is {}; from 1e-30 on no weight without a gradient is divided by 0",
      source, adam_epsilon);
  const TrainConfig untold;
  for (const auto& [key, is_told] : std::initializer_list<std::pair<const char*, bool>>{
           {"lora_targets", lora_targets != untold.lora_targets},
           {"lora_alpha", lora_alpha != untold.lora_alpha},
           {"lora_merge", lora_merge != untold.lora_merge}}) {
    heddle::check(!is_told || lora_rank > 0, ErrorKind::usage,
                  "{}: {} is of adapters, and there are none; give `lora_rank`", source,
                  field_name(key));
  }
  heddle::check(max_updates > 0 || max_minutes > 0, ErrorKind::usage,
                "{}: the run has no end; give `max_updates` or `max_minutes`", source);
  heddle::check(max_updates > 0 || (schedule != "cosine" && schedule != "linear"), ErrorKind::usage,
                "{}: schedule {} falls until max_updates; give `max_updates`", source, schedule);
}

bool is_limit(const std::string& key) {
  constexpr std::array kLimits = {"max_updates", "max_minutes", "patience", "recompute"};
  return std::find(kLimits.begin(), kLimits.end(), key) != kLimits.end();
}

bool set_default_end(TrainConfig& config) {
  if (config.max_updates > 0 || config.max_minutes > 0) return false;
  config.max_updates = config.task_config->facts().updates;
  return true;
}

void check_teacher(const RunPaths& paths,
                   std::initializer_list<std::pair<const char*, bool>> told) {
  for (const auto& [key, is_told] : told) {
    check(!is_told || !paths.teacher.empty(), ErrorKind::usage,
          "train: {} says how to follow a teacher, and nobody teaches; give `teacher`",
          field_name(key));
  }
  check(paths.teacher.empty() || path_exists(paths.teacher), ErrorKind::data,
        "{}: there is no such folder; a teacher is a model, or a training run", paths.teacher);
}

TrainConfig default_config(const std::string& task, const std::string& model_type) {
  TrainConfig config;
  config.task = task;
  config.task_config = TaskConfig(task);
  const std::vector<std::string> types = trainable_types(config.head());
  config.model_type = model_type.empty() ? types[0] : model_type;
  check(std::find(types.begin(), types.end(), config.model_type) != types.end(), ErrorKind::usage,
        "task {} trains no {}; choose {}", task, model_type, fmt::join(types, ", "));
  config.stack = StackConfig(config.model_type);
  config.task_config->suit(config);
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
        "preset {} is a {}, but model_type is {}; give `model_type` {}", name, type,
        config.model_type, type);
  static_cast<void>(from_json(config.stack.fields(), sizes, name));
}

std::vector<std::string> recipe_names() {
  std::vector<std::string> names;
  for (const Recipe& recipe : kRecipes) names.emplace_back(recipe.name);
  return names;
}

TrainConfig load_recipe(const std::string& name) {
  for (const Recipe& recipe : kRecipes) {
    if (recipe.name == name) {
      return parse_config(Json::parse(recipe.json, "recipe " + name), "recipe " + name);
    }
  }
  fail(ErrorKind::usage, "there is no recipe '{}'{}; the recipes are: {}", name,
       did_you_mean(name, recipe_names()), fmt::join(recipe_names(), ", "));
}

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
  check(
      !fields.contains("data"), ErrorKind::usage,
      "{}: this is the train.json of a run, which names its data too; to go on, name the run with "
      "`out`; else give a recipe's fields",
      source);
  const std::vector<std::string> unknown = from_json(config, fields, source);
  std::vector<std::string> known;
  for (const FieldInfo& field : list_fields(config)) known.push_back(field.key);
  check(unknown.empty(), ErrorKind::data, "{}: unknown key '{}'{}", source,
        unknown.empty() ? "" : unknown[0], unknown.empty() ? "" : did_you_mean(unknown[0], known));
  return config;
}

}  // namespace heddle::train
