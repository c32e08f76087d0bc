// heddle train: trains a model, or goes on with a run.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <map>
#include <sstream>

#include "heddle/base/error.h"
#include "heddle/base/log.h"
#include "heddle/base/parallel.h"
#include "heddle/base/progress.h"
#include "heddle/cli/commands.h"
#include "heddle/cli/run_report.h"
#include "heddle/train/replaced_run.h"
#include "heddle/train/stack_task.h"
#include "heddle/train/trainer.h"

namespace heddle::cli {
namespace {

struct Flags {
  std::string recipe, config, preset;
  train::RunOptions run;
  int threads = 0;
  std::map<std::string, std::string> fields;  // key -> text
};

// The same with the model that a run begins from in place of its own.
train::TrainConfig begun_from(train::TrainConfig config, const std::string& from) {
  if (from.empty()) return config;
  check(!config.is_translation(), ErrorKind::usage, "train: task translation has no --from");
  config.stack = train::config_of_model(from);
  config.model_type = config.stack.type();
  return config;
}

// A rate that is low enough for weights that know something already, or that of adapters.
train::TrainConfig config_to_fine_tune(const std::string& from, const std::string& task) {
  check(!task.empty() && task != "translation", ErrorKind::usage,
        "train: --from needs --task, another than translation: {}",
        fmt::join(train::task_names(), ", "));
  train::TrainConfig config =
      begun_from(train::default_config(task, train::config_of_model(from).type()), from);
  config.learning_rate = 5e-5;
  config.weight_decay = 0.01;
  return config;
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
  return train::default_config(task.empty() ? "translation" : task, flag("model_type"));
}

// Which fields there are follows from task and model, so these are settled first.
void check_flags(const Flags& f, const train::TrainConfig& config) {
  const std::vector<FieldInfo> known = list_fields(config);
  for (const auto& [key, text] : f.fields) {
    const auto at = std::find_if(known.begin(), known.end(),
                                 [&, &k = key](const FieldInfo& field) { return field.key == k; });
    check(at != known.end(), ErrorKind::usage, "train: task {} with model_type {} has no {}",
          config.task, config.model_type, flag_name(key));
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
  for (const auto& [key, text] : f.fields) set_from_string(config, key, text);
  return config;
}

void report(const train::RunResult& r, const std::string& out) {
  if (r.was_finished) {
    log_info(
        "{} is finished: {} updates in {}. Raise --max-updates, --max-minutes or --patience to go "
        "on, or start anew with --overwrite.",
        out, r.updates, format_duration(r.seconds));
    return;
  }
  if (r.was_interrupted) {
    log_info("stopped at update {}; the same command goes on from here", r.updates);
    return;
  }
  std::string metrics;
  for (const train::Metric& m : r.best.metrics) metrics += " and " + train::to_text(m);
  log_info("{} updates in {}; best model: {} with validation loss {:.4f}{}; it is in {}/best",
           r.updates, format_duration(r.seconds), r.best_kind, r.best.loss, metrics, out);
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
    const auto most = std::max_element(
        all.begin(), all.end(),
        [&](const Default& a, const Default& b) { return (a.*names).size() < (b.*names).size(); });
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
  std::vector<Default> defaults = {};

  void add(const FieldInfo& info, const std::string& task, const std::string& type) {
    add_new(tasks, task);
    add_new(types, type);
    if (info.type != field.type) add_choices(field.type, info.type);
    auto at = std::find_if(defaults.begin(), defaults.end(),
                           [&](const Default& d) { return d.value == info.default_value; });
    if (at == defaults.end()) at = defaults.insert(at, {info.default_value, {}, {}});
    add_new(at->tasks, task);
    add_new(at->types, type);
  }

  // Fields of models of the registry go by their types, others by their tasks.
  std::string group() const {
    if (tasks == train::task_names()) return "Settings";
    const bool is_translation = tasks[0] == "translation";
    const auto fields = train::StackConfig(is_translation ? "gpt2" : types[0]).fields();
    const bool is_of_model =
        !is_translation && std::any_of(fields.begin(), fields.end(),
                                       [&](const Field& f) { return f.key == field.key; });
    return fmt::format("Settings of {}", fmt::join(is_of_model ? types : tasks, ", "));
  }
};

// Every field of every task and model, once: which of them a run has is known when it is read.
std::vector<Setting> all_settings() {
  std::vector<Setting> settings;
  for (const std::string& task : train::task_names()) {
    for (const std::string& type : train::trainable_types(task)) {
      for (const FieldInfo& field : list_fields(train::default_config(task, type))) {
        auto at = std::find_if(settings.begin(), settings.end(),
                               [&](const Setting& s) { return s.field.key == field.key; });
        if (at == settings.end()) at = settings.insert(at, {field, {}, {}});
        at->add(field, task, type);
      }
    }
  }
  return settings;
}

void add_settings(CLI::App& command, const std::shared_ptr<Flags>& flags) {
  for (const Setting& s : all_settings()) {
    command
        .add_option_function<std::string>(
            flag_name(s.field.key),
            [flags, key = s.field.key](const std::string& text) { flags->fields[key] = text; },
            fmt::format("{} [{}]", s.field.help, default_text(s.defaults)))
        ->type_name(s.field.type)
        ->group(s.group());
  }
}

}  // namespace

void add_train_settings(CLI::App& app) {
  add_settings(*app.get_subcommand("train"), std::make_shared<Flags>());
}

void add_train(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("train", "Train a model, or go on with a run");
  command->add_option(
      "--recipe", flags->recipe,
      fmt::format("settings that come with heddle: {}", fmt::join(train::recipe_names(), ", ")));
  command->add_option("--config", flags->config, "settings from a JSON file")->excludes("--recipe");
  command->add_option("--preset", flags->preset,
                      "sizes of the model: tiny, base, big of translation; gpt2, gpt2-medium, "
                      "gpt2-large, gpt2-xl");
  command->add_option("--data", flags->run.paths.data,
                      "translation: folder with {train,val}.{source,target}; else a file of text "
                      "or a folder of them");
  command->add_option("--val-data", flags->run.paths.val_data,
                      "file that is held out; without it val.* beside train.*, or a share");
  command->add_option("--out", flags->run.out, "folder of the run")->required();
  command->add_option("--from", flags->run.paths.from,
                      "model to begin with: a folder, or a run; a head that it lacks is new");
  command->add_flag("--overwrite", flags->run.overwrite,
                    "replace the run that stands there, once the new one has saved");
  command->add_option("--threads", flags->threads, "threads; the result does not depend on them")
      ->check(CLI::PositiveNumber);
  // Not before they are needed: making them takes more than half of a start of the program.
  command->preparse_callback([command, flags](size_t) { add_settings(*command, flags); });
  command->callback([flags] {
    if (flags->threads > 0) set_num_threads(flags->threads);
    flags->run.on_event = report_writer(flags->run.out);
    train::settle_replaced(flags->run.out);
    report(train::train_model(make_config(*flags), flags->run), flags->run.out);
  });
}

}  // namespace heddle::cli
