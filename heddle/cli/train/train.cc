// heddle train: trains a model, or goes on with a run.

#include <algorithm>

#include "heddle/base/error.h"
#include "heddle/base/log.h"
#include "heddle/base/parallel.h"
#include "heddle/base/progress.h"
#include "heddle/cli/commands.h"
#include "heddle/cli/train/run_report.h"
#include "heddle/cli/train/train_settings.h"
#include "heddle/train/run/run_folder.h"
#include "heddle/train/tasks/stack_task.h"
#include "heddle/train/tasks/task.h"
#include "heddle/train/trainer.h"

namespace heddle::cli {
namespace {

struct Flags {
  std::string recipe, config, preset;
  train::RunOptions run;
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

// A rate that is low enough for weights that know something already, or that of adapters.
train::TrainConfig config_to_fine_tune(const std::string& from, const std::string& task) {
  train::StackConfig model = train::config_of_model(from);
  train::TrainConfig config = begun_from(
      train::default_config(task.empty() ? task_of(model, from) : task, model.type()), from);
  config.learning_rate = 5e-5;
  config.warmup_updates = 100;
  config.weight_decay = 0.01;
  return config;
}

bool is_published(const std::string& preset) {
  const std::vector<std::string> names = model_presets();
  return std::find(names.begin(), names.end(), preset) != names.end();
}

// The run's own config if it goes on, else the recipe, the file, or the task's own.
train::TrainConfig first_config(const Flags& f) {
  const auto flag = [&](const char* key) {
    const auto found = f.fields.find(key);
    return found == f.fields.end() ? std::string() : found->second;
  };
  if (!f.recipe.empty()) return begun_from(train::load_recipe(f.recipe), f.run.paths.from);
  if (!f.config.empty()) return begun_from(train::load_config(f.config), f.run.paths.from);
  if (train::is_run(f.run.out) && !f.run.overwrite) return train::stored_config(f.run.out);
  const std::string task = flag("task");
  if (!f.run.paths.from.empty()) return config_to_fine_tune(f.run.paths.from, task);
  if (task.empty() && is_published(f.preset)) {
    const std::string type = preset_config(f.preset)->type;
    return train::default_config(train::task_of_type(type), type);
  }
  return train::default_config(task.empty() ? "translation" : task, flag("model_type"));
}

// Which fields there are follows from task and model, so these are settled first.
void check_flags(const Flags& f, const train::TrainConfig& config) {
  const std::vector<FieldInfo> known = list_fields(config);
  for (const auto& [key, text] : f.fields) {
    const auto at = std::find_if(known.begin(), known.end(),
                                 [&, &k = key](const FieldInfo& field) { return field.key == k; });
    const std::string own = at == known.end() ? own_name(config, key) : "";
    check(at != known.end(), ErrorKind::usage, "train: task {} with model_type {} has no {}{}{}",
          config.task, config.model_type, flag_name(key), own.empty() ? "" : "; there it is ", own);
    check((key != "task" && key != "model_type") || text == at->default_value, ErrorKind::usage,
          "train: these settings are of {} {}, not {}; leave one of them out", key,
          at->default_value, text);
  }
}

// That, then the preset, then the flags.
train::TrainConfig make_config(const Flags& f) {
  train::TrainConfig config = first_config(f);
  check_flags(f, config);
  if (!f.preset.empty()) train::apply_preset(config, f.preset);
  for (const auto& [key, text] : f.fields) set_from_string(config, flag_name(key), text);
  return config;
}

// The same for a run, which must end.
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

}  // namespace

void add_train_settings(Subcommand& app) {
  static GivenFields unused;
  Subcommand train = app.get_subcommand("train");
  add_settings(train, unused);
}

void add_train(Subcommand& app) {
  auto flags = std::make_shared<Flags>();
  Subcommand command = app.add_subcommand("train", "Train a model, or go on with a run");
  command->add_option(
      "--recipe", flags->recipe,
      fmt::format("settings that come with heddle: {}", fmt::join(train::recipe_names(), ", ")));
  command->add_option("--config", flags->config, "settings from a JSON file")->excludes("--recipe");
  command->add_option("--preset", flags->preset,
                      fmt::format("sizes of the model: {}", fmt::join(model_presets(), ", ")));
  command->add_option("--data", flags->run.paths.data,
                      "translation: folder with {train,val}.{source,target}; else a file of text "
                      "or a folder of them");
  command->add_option("--val-data", flags->run.paths.val_data,
                      "file that is held out; without it val.* beside train.*, or a share");
  command->add_option("-o,--out", flags->run.out, "folder of the run")->required();
  command->add_option("--from", flags->run.paths.from,
                      "model to begin with: a folder, or a run; a head that it lacks is new");
  command->add_flag("--overwrite", flags->run.overwrite,
                    "replace the run that stands there, once the new one has a model");
  command->add_option("-t,--threads", flags->threads, "threads; the result does not depend on them")
      ->positive();
  // Not before they are needed: making them takes more than half of a start of the program.
  command->before_parsing([command, flags]() mutable { add_settings(*command, flags->fields); });
  set_train_help(*command, [flags] { return chosen_config(*flags); });
  command->callback([flags] {
    if (flags->threads > 0) set_num_threads(flags->threads);
    flags->run.on_event = report_writer(flags->run.out);
    train::settle_replaced(flags->run.out);
    report(train::train_model(config_of_run(*flags), flags->run), flags->run);
  });
}

}  // namespace heddle::cli
