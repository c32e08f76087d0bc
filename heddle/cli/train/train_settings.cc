// Flags of heddle train from the fields of its configs, and a help of a size that is read.
#include "heddle/cli/train/train_settings.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>

namespace heddle::cli {
namespace {

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
    const auto fields = train::StackConfig(types[0]).fields();
    const bool is_of_model = std::any_of(fields.begin(), fields.end(),
                                         [&](const Field& f) { return f.key == field.key; });
    return fmt::format("Settings of {}", fmt::join(is_of_model ? types : tasks, ", "));
  }
};

// Every field of every task and model, once: which of them a run has is known when it is read.
std::vector<Setting> all_settings() {
  std::vector<Setting> settings;
  for (const std::string& task : train::task_names()) {
    for (const std::string& type : train::trainable_types(train::TaskConfig(task)->facts().head)) {
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
    const auto at = std::find_if(settings.begin(), settings.end(),
                                 [&](const Setting& s) { return s.field.key == key; });
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

}  // namespace

void add_settings(Subcommand& command, GivenFields& fields) {
  for (const Setting& s : all_settings()) {
    command
        .add_option_function(
            flag_name(s.field.key),
            [&fields, key = s.field.key](const std::string& text) { fields[key] = text; },
            fmt::format("{} [{}]", s.field.help, default_text(s.defaults)))
        ->type_name(s.field.type)
        ->group(s.group());
  }
}

void set_train_help(Subcommand& command,
                    std::function<std::optional<train::TrainConfig>()> chosen) {
  command.app().set_help_all_flag("--help-all",
                                  "print the settings of every task and model and exit");
  command.app().formatter(std::make_shared<TrainHelp>(std::move(chosen)));
}

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

}  // namespace heddle::cli
