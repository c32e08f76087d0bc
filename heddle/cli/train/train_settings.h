// The fields of a training run as flags of heddle train, and their help.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "heddle/cli/command_line.h"
#include "heddle/train/config.h"

namespace heddle::cli {

/// Fields that were given as flags: key -> text.
using GivenFields = std::map<std::string, std::string>;

/// Adds a flag for each field of each task and model, once: which of them a run has is known when
/// the command line is read.
void add_settings(Subcommand& command, GivenFields& fields);

/// The help of the command: the common settings; of `chosen`, where it gives a config, all of its
/// own with their values; with --help-all all there are.
void set_train_help(Subcommand& command, std::function<std::optional<train::TrainConfig>()> chosen);

/// Names that a config has for what other models call `key`: "--n-layer" for num_hidden_layers; ""
/// if there is none.
std::string own_name(const train::TrainConfig& config, const std::string& key);

}  // namespace heddle::cli
