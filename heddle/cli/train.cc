// heddle train: trains a model, or goes on with a run.
#include <CLI/CLI.hpp>

#include <map>

#include "heddle/base/log.h"
#include "heddle/base/parallel.h"
#include "heddle/base/progress.h"
#include "heddle/cli/commands.h"
#include "heddle/cli/run_report.h"
#include "heddle/train/trainer.h"

namespace heddle::cli {
namespace {

struct Flags {
  std::string recipe, config, preset;
  train::RunOptions run;
  int threads = 0;
  std::map<std::string, std::string> fields;  // key -> text
};

// The run's own config if it goes on, else the recipe, the file or the preset; then the flags.
train::TrainConfig make_config(const Flags& f) {
  train::TrainConfig config;
  if (!f.recipe.empty()) {
    config = train::load_recipe(f.recipe);
  } else if (!f.config.empty()) {
    config = train::load_config(f.config);
  } else if (train::is_run(f.run.out) && !f.run.overwrite) {
    config = train::stored_config(f.run.out);
  }
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
  log_info("{} updates in {}; best model: {} with validation loss {:.4f}{}; it is in {}/best",
           r.updates, format_duration(r.seconds), r.best_kind, r.best_loss,
           r.best_bleu >= 0 ? fmt::format(" and BLEU {:.2f}", r.best_bleu) : "", out);
}

}  // namespace

void add_train(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("train", "Train a model, or go on with a run");
  command->add_option(
      "--recipe", flags->recipe,
      fmt::format("settings that come with heddle: {}", fmt::join(train::recipe_names(), ", ")));
  command->add_option("--config", flags->config, "settings from a JSON file")->excludes("--recipe");
  command->add_option("--preset", flags->preset, "sizes of the model: tiny, base, big");
  command->add_option("--data", flags->run.data, "folder with {train,val}.{source,target}");
  command->add_option("--out", flags->run.out, "folder of the run")->required();
  command->add_flag("--overwrite", flags->run.overwrite, "forget what the folder holds");
  command->add_option("--threads", flags->threads, "threads; the result does not depend on them")
      ->check(CLI::PositiveNumber);
  for (const FieldInfo& field : list_fields(train::TrainConfig())) {
    command
        ->add_option_function<std::string>(
            flag_name(field.key),
            [flags, key = field.key](const std::string& text) { flags->fields[key] = text; },
            fmt::format("{} [{}]", field.help, field.default_value))
        ->type_name(field.type)
        ->group("Settings");
  }
  command->callback([flags] {
    if (flags->threads > 0) set_num_threads(flags->threads);
    flags->run.on_event = report_writer(flags->run.out);
    report(train::train_translation(make_config(*flags), flags->run), flags->run.out);
  });
}

}  // namespace heddle::cli
