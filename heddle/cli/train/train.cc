// heddle train: trains a model, or goes on with a run.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <sstream>

#include "heddle/base/error.h"
#include "heddle/base/log.h"
#include "heddle/base/parallel.h"
#include "heddle/base/progress.h"
#include "heddle/cli/commands.h"
#include "heddle/cli/flags.h"
#include "heddle/cli/group_flags.h"
#include "heddle/dist/share_out.h"
#include "heddle/inspect/run_history.h"
#include "heddle/train/config.h"
#include "heddle/train/run/run_folder.h"
#include "heddle/train/tasks/model_task.h"
#include "heddle/train/tasks/task.h"
#include "heddle/train/trainer.h"

namespace heddle::cli {
namespace {

// Fields that were given as flags: key -> text.
using GivenFields = std::map<std::string, std::string>;

// --- the fields of all tasks and models as flags, and a help of a size that is read -------------

// What most runs set, in the order of the help.
constexpr const char* kCommon[] = {
    "task",         "model_type",    "source_lang", "target_lang", "tokenizer_type",
    "vocab_size",   "text_key",      "label_key",   "block_size",  "batch_size",
    "batch_tokens", "learning_rate", "max_updates", "max_minutes", "validate_every",
    "early_stop",   "lora_rank",     "precision",   "seed"};

// The same thing under the names that models have for it.
const std::vector<std::vector<const char*>>& same_things() {
  static const std::vector<std::vector<const char*>> all = {
      {"n_layer", "n_layers", "num_hidden_layers", "encoder_layers", "decoder_layers"},
      {"n_head", "n_heads", "num_attention_heads", "encoder_attention_heads",
       "decoder_attention_heads"},
      {"n_embd", "hidden_size", "d_model", "dim"},
      {"n_inner", "intermediate_size", "d_inner", "hidden_dim", "encoder_ffn_dim",
       "decoder_ffn_dim"},
      {"n_positions", "max_position_embeddings"},
      {"resid_pdrop", "hidden_dropout_prob", "dropout"},
      {"attn_pdrop", "attention_probs_dropout_prob", "attention_dropout", "dropatt"},
      {"activation_function", "hidden_act", "activation", "ff_activation"},
      {"layer_norm_epsilon", "layer_norm_eps", "rms_norm_eps"},
      {"classifier_dropout", "seq_classif_dropout", "summary_last_dropout"},
      {"d_head", "head_dim"},
      {"batch_size", "batch_tokens"},
      {"block_size", "max_tokens"},
  };
  return all;
}

void add_new(std::vector<std::string>& names, const std::string& name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

// Adds the choices "a|b" to a list of such that lacks them.
void add_choices(std::string& all, const std::string& more) {
  std::istringstream choices(more);
  for (std::string choice; std::getline(choices, choice, '|');) {
    const bool is_there = ("|" + all + "|").find("|" + choice + "|") != std::string::npos;
    if (!is_there) all += "|" + choice;
  }
}

// A default, and where it is that.
struct Default {
  std::string value;
  std::vector<std::string> tasks, types;
};

// "100", or "translation: 4000; else 100" where it goes by one of the two.
std::string default_text(const std::vector<Default>& all) {
  if (all.size() == 1) return all[0].value;
  const auto is_its_own = [](const std::vector<std::string> Default::*names) {
    return [names](const Default& d) { return d.*names == std::vector{d.value}; };
  };
  if (std::all_of(all.begin(), all.end(), is_its_own(&Default::tasks))) return all[0].value;
  if (std::all_of(all.begin(), all.end(), is_its_own(&Default::types))) return "by task";
  for (const auto names : {&Default::tasks, &Default::types}) {
    size_t count = 0;
    std::vector<std::string> different;
    for (const Default& d : all) {
      count += (d.*names).size();
      for (const std::string& name : d.*names) add_new(different, name);
    }
    if (count != different.size()) continue;  // a task or a type has two of them
    const auto most =
        std::ranges::max_element(all, {}, [&](const Default& d) { return (d.*names).size(); });
    std::string text;
    for (const Default& d : all) {
      if (&d != &*most) text += fmt::format("{}: {}; ", fmt::join(d.*names, ", "), d.value);
    }
    return text + "else " + most->value;
  }
  return "by task and model";
}

// A field that a task or a model has, and which do.
struct Setting {
  FieldInfo field;
  std::vector<std::string> tasks, types;
  std::vector<Default> defaults = {}, helps = {};

  const std::string& key() const { return field.key; }

  void add(const FieldInfo& info, const std::string& task, const std::string& type) {
    add_new(tasks, task);
    add_new(types, type);
    if (info.type != field.type) add_choices(field.type, info.type);
    note(defaults, info.default_value, task, type);
    note(helps, info.help, task, type);
  }

  // What is said to whom.
  static void note(std::vector<Default>& all, const std::string& value, const std::string& task,
                   const std::string& type) {
    auto at = std::ranges::find(all, value, &Default::value);
    if (at == all.end()) at = all.insert(at, {value, {}, {}});
    add_new(at->tasks, task);
    add_new(at->types, type);
  }

  // Fields of models of the registry go by their types, others by their tasks.
  std::string group() const {
    if (tasks == train::task_names()) return "Settings";
    return fmt::format("Settings of {}", fmt::join(is_of_model() ? types : tasks, ", "));
  }
  bool is_of_model() const {
    const auto fields = train::StackConfig(types[0]).fields();
    return std::ranges::count(fields, field.key, &Field::key) > 0;
  }
  // Tasks may mean different things by a key.
  void join_helps() {
    if (helps.size() < 2 || is_of_model()) return;
    field.help.clear();
    for (const Default& h : helps) {
      field.help += fmt::format("{}of {}: {}", field.help.empty() ? "" : "; ",
                                fmt::join(h.tasks, ", "), h.value);
    }
  }
};

// Every field of every task and model, once: which of them a run has is known when it is read.
std::vector<Setting> all_settings() {
  std::vector<Setting> settings;
  for (const std::string& task : train::task_names()) {
    for (const std::string& type : train::trainable_types(train::TaskConfig(task)->facts().head)) {
      for (const FieldInfo& field : list_fields(train::default_config(task, type))) {
        auto at = std::ranges::find(settings, field.key, &Setting::key);
        if (at == settings.end()) at = settings.insert(at, {field, {}, {}});
        at->add(field, task, type);
      }
    }
  }
  for (Setting& setting : settings) setting.join_helps();
  return settings;
}

// "  --n-layer integer           number of blocks [12]"
std::string help_line(const FieldInfo& field, const std::string& value) {
  std::ostringstream out;
  CLI::detail::format_help(out, flag_name(field.key) + " " + field.type,
                           fmt::format("{} [{}]", field.help, value), 30);
  return out.str();
}

std::string common_settings() {
  std::string text = "\nCommon settings:\n";
  const std::vector<Setting> settings = all_settings();
  for (const char* key : kCommon) {
    const auto at = std::ranges::find(settings, key, &Setting::key);
    text += help_line(at->field, default_text(at->defaults));
  }
  return text;
}

std::string settings_of(const train::TrainConfig& config) {
  std::string text =
      fmt::format("\nSettings of task {} with model_type {}:\n", config.task, config.model_type);
  for (const FieldInfo& field : list_fields(config)) text += help_line(field, field.default_value);
  return text;
}

constexpr const char* kMore = R"(
  heddle train --task TASK [--model-type TYPE] --help   all settings of a task and a model
  heddle train --recipe NAME --help                     those of a recipe; --preset, --from too
  heddle train --help-all                               all there are
  heddle launch -n N train --shards N ..                by N processes, see docs/scaling.md
)";

class TrainHelp : public CLI::Formatter {
 public:
  explicit TrainHelp(std::function<std::optional<train::TrainConfig>()> chosen)
      : chosen_(std::move(chosen)) {}

  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    if (mode == CLI::AppFormatMode::All) return Formatter::make_help(app, name, mode);
    const std::string run = make_group("Options", false, app->get_options([](const auto* option) {
      return option->get_group() == "Options" && option->nonpositional();
    }));
    const std::optional<train::TrainConfig> config = chosen_();
    return make_description(app) + make_usage(app, name) + run +
           (config ? settings_of(*config) : common_settings()) + kMore;
  }

 private:
  std::function<std::optional<train::TrainConfig>()> chosen_;
};

// Adds a flag for each field of each task and model, once: which of them a run has is known when
// the command line is read.
void add_settings(Subcommand& command, GivenFields& fields) {
  for (const Setting& s : all_settings()) {
    command
        .add_option_function(
            flag_name(s.field.key),
            [&fields, key = s.field.key](const std::string& text) { fields[key] = text; },
            fmt::format("{} [{}]", s.field.help, default_text(s.defaults)))
        .type_name(s.field.type)
        .group(s.group());
  }
}

// The help of the command: the common settings; of `chosen`, where it gives a config, all of its
// own with their values; with --help-all all there are.
void set_train_help(Subcommand& command,
                    std::function<std::optional<train::TrainConfig>()> chosen) {
  command.app().set_help_all_flag("--help-all",
                                  "print the settings of every task and model and exit");
  command.app().formatter(std::make_shared<TrainHelp>(std::move(chosen)));
}

// Names that a config has for what other models call `key`: "--n-layer" for num_hidden_layers; ""
// if there is none.
std::string own_name(const train::TrainConfig& config, const std::string& key) {
  std::string names;
  for (const std::vector<const char*>& same : same_things()) {
    if (std::find(same.begin(), same.end(), key) == same.end()) continue;
    for (const FieldInfo& field : list_fields(config)) {
      if (std::find(same.begin(), same.end(), field.key) == same.end()) continue;
      names += (names.empty() ? "" : " and ") + flag_name(field.key);
    }
  }
  return names;
}

// --- the run -------------------------------------------------------------------------------------

struct Flags {
  std::string recipe, config, preset;
  train::RunOptions run;
  dist::GroupOptions ranks;
  std::string wire = "f32";
  int threads = 0;
  GivenFields fields;
};

// The same with the model that a run begins from in place of its own.
train::TrainConfig begun_from(train::TrainConfig config, const std::string& from) {
  if (from.empty()) return config;
  config.stack = train::config_of_model(from);
  config.model_type = config.stack.type();
  return config;
}

// The task that the model's head is for, which is said.
std::string task_of(train::StackConfig& model, const std::string& from) {
  const Head head = model.hub().head;
  std::string name = model.type();
  for (const HeadClass& known : model.config().heads()) {
    if (known.head == head) name = known.name;
  }
  const std::string task = train::task_of_head(head);
  const std::vector<std::string> tasks = train::task_names();
  check(!task.empty(), ErrorKind::usage,
        "train: {} is a {}, whose head is that of no one task; give --task: {}", from, name,
        fmt::join(tasks.begin() + 1, tasks.end(), ", "));  // translation has pairs of its own
  log_info("train: {} is a {}: task {}", from, name, task);
  return task;
}

// Defaults that suit weights which know something already: a low rate, decay apart from gradients.
train::TrainConfig config_to_fine_tune(const std::string& from, const std::string& task) {
  train::StackConfig model = train::config_of_model(from);
  train::TrainConfig config = begun_from(
      train::default_config(task.empty() ? task_of(model, from) : task, model.type()), from);
  config.optimizer = "adamw";  // Adam's own decay would outweigh gradients of means over tokens
  config.weight_decay = 0.01;
  config.clip_norm = 1;
  config.learning_rate = 5e-5;
  config.warmup_updates = 100;
  return config;
}

// The run's own config if it goes on, else the recipe, the file, or the task's own.
train::TrainConfig first_config(const Flags& f) {
  const auto flag = [&](const char* key) {
    const auto found = f.fields.find(key);
    return found == f.fields.end() ? std::string() : found->second;
  };
  if (!f.recipe.empty()) return begun_from(train::load_recipe(f.recipe), f.run.paths.from);
  if (!f.config.empty()) {
    return begun_from(train::parse_config(Json::load(f.config), f.config), f.run.paths.from);
  }
  if (train::is_run(f.run.out) && !f.run.overwrite) return train::stored_config(f.run.out);
  const std::string task = flag("task");
  if (!f.run.paths.from.empty()) return config_to_fine_tune(f.run.paths.from, task);
  if (task.empty() && std::ranges::count(model_presets(), f.preset) > 0) {
    const std::string type = preset_config(f.preset)->type;
    return train::default_config(train::task_of_type(type), type);
  }
  return train::default_config(task.empty() ? "translation" : task, flag("model_type"));
}

// Which fields there are follows from task and model, so these are settled first.
void check_flags(const Flags& f, const train::TrainConfig& config) {
  const std::vector<FieldInfo> known = list_fields(config);
  for (const auto& [key, text] : f.fields) {
    const auto at = std::ranges::find(known, key, &FieldInfo::key);
    const std::string own = at == known.end() ? own_name(config, key) : "";
    check(at != known.end(), ErrorKind::usage, "train: task {} with model_type {} has no {}{}{}",
          config.task, config.model_type, flag_name(key), own.empty() ? "" : "; there it is ", own);
    check((key != "task" && key != "model_type") || text == at->default_value, ErrorKind::usage,
          "train: these settings are of {} {}, not {}; leave one of them out", key,
          at->default_value, text);
  }
}

// first_config(), and over it the preset, then the flags.
train::TrainConfig make_config(const Flags& f) {
  train::TrainConfig config = first_config(f);
  check_flags(f, config);
  if (!f.preset.empty()) train::apply_preset(config, f.preset);
  for (const auto& [key, text] : f.fields) set_from_string(config, flag_name(key), text);
  return config;
}

// make_config() of a run, which must end: with a limit where none is given.
train::TrainConfig config_of_run(const Flags& f) {
  train::TrainConfig config = make_config(f);
  if (train::set_default_end(config)) {
    // What is wrong with the text is said before how long its training would take.
    const bool is_new = !train::is_run(f.run.out) || f.run.overwrite;
    if (is_new) train::check_data(config, f.run.paths);
    log_info("train: neither --max-updates nor --max-minutes is given: {}",
             counted(config.max_updates, "update"));
  }
  return config;
}

// What --help is to show: none where the command line chooses nothing.
std::optional<train::TrainConfig> chosen_config(const Flags& f) {
  const bool is_chosen = !f.recipe.empty() || !f.config.empty() || !f.preset.empty() ||
                         !f.run.paths.from.empty() || f.fields.contains("task") ||
                         f.fields.contains("model_type");
  if (!is_chosen) return std::nullopt;
  return make_config(f);
}

// What the user is to do is said for the command that he gave: --overwrite would begin again.
void report_stop(const train::RunResult& r, const train::RunOptions& run) {
  const char* command = run.overwrite ? "the same command without --overwrite" : "the same command";
  log_info("stopped at update {}; {} goes on from here", r.updates, command);
  if (!train::keeps_replaced(run.out)) return;
  log_info(
      "{0}/replaced keeps the earlier run until this one's first validation; "
      "'mv {0}/replaced OTHER' keeps it for good",
      run.out);
}

void report(const train::RunResult& r, const train::RunOptions& run) {
  const std::string& out = run.out;
  if (r.was_finished) {
    log_info(
        "{} is finished: {} in {}. Raise --max-updates, --max-minutes or --patience to go "
        "on, or start anew with --overwrite.",
        out, counted(r.updates, "update"), format_duration(r.seconds));
    return;
  }
  if (r.was_interrupted) {
    report_stop(r, run);
    return;
  }
  std::string metrics;
  for (const train::Metric& m : r.best.metrics) metrics += " and " + train::to_text(m);
  log_info("{} in {}; best model: {} with validation loss {:.4f}{}; it is in {}/best",
           counted(r.updates, "update"), format_duration(r.seconds), r.best_kind, r.best.loss,
           metrics, out);
}

// Rank 0 speaks for all.
void run(Flags& flags) {
  apply_threads(flags.threads);
  flags.ranks.wire = wire_type(flags.wire);
  const std::unique_ptr<dist::Group> group = dist::make_group(flags.ranks);
  flags.run.any_cpu = flags.ranks.any_cpu;
  flags.run.group = group.get();
  const bool speaks = group->rank() == 0;
  if (speaks) {
    flags.run.on_event = inspect::report_writer(flags.run.out);
  } else {
    set_log_level(LogLevel::error);
  }
  dist::do_alike(*group, [&] {  // what is wanted follows from what stands in RUN
    if (speaks) train::settle_replaced(flags.run.out);
  });
  std::optional<train::TrainConfig> config;
  dist::do_alike(*group, [&] { config = config_of_run(flags); });
  const train::RunResult result = train::train_model(*config, flags.run);
  if (speaks) report(result, flags.run);
}

}  // namespace

void add_train_settings(Subcommand& app) {
  static GivenFields unused;
  Subcommand train = app.get_subcommand("train");
  add_settings(train, unused);
}

void add_train(Subcommand& app) {
  auto [command, flags] =
      app.add_command<Flags>("train", "Train a model, or go on with a run", run);
  const Option recipe = command.add_option(
      "--recipe", flags.recipe,
      fmt::format("settings that come with heddle: {}", fmt::join(train::recipe_names(), ", ")));
  command.add_option("--config", flags.config, "settings from a JSON file").excludes(recipe);
  command.add_option("--preset", flags.preset,
                     fmt::format("sizes of the model: {}", fmt::join(model_presets(), ", ")));
  command.add_option("--data", flags.run.paths.data,
                     "translation: folder with {train,val}.{source,target}; images: a folder for "
                     "each class, MNIST's or CIFAR's files, with boxes COCO's or VOC's; else a "
                     "file of text or a folder of them");
  command.add_option("--val-data", flags.run.paths.val_data,
                     "file or folder that is held out, of all but translation; without it val.* "
                     "beside train.*, or a share");
  command.add_option("-o,--out", flags.run.out, "folder of the run").required();
  command.add_option("--from", flags.run.paths.from,
                     "model to begin with: a folder, or a run; a head that it lacks is new");
  command.add_option(
      "--teacher", flags.run.paths.teacher,
      "image_classification, translation: a model of the task that teaches; a folder, "
      "or a run");
  command.add_option("--unlabelled", flags.run.paths.unlabelled,
                     "image_classification: images without labels, of which only the teacher says "
                     "what they show");
  command.add_flag("--overwrite", flags.run.overwrite,
                   "replace the run that stands there, once the new one has a model");
  add_threads_flag(command, flags.threads, "; the result does not depend on them");
  add_group_flags(command, flags.ranks);
  add_wire_flag(command, flags.wire);
  // Not before they are needed: making them takes more than half of a start of the program.
  command.before_parsing(
      [command = command, &flags = flags]() mutable { add_settings(command, flags.fields); });
  set_train_help(command, [&flags = flags] { return chosen_config(flags); });
}

}  // namespace heddle::cli
