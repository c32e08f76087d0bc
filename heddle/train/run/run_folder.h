// RUN, the folder of a training run: what it was begun with, whose it is, making and clearing it.
#pragma once

#include <array>
#include <string>

#include "heddle/train/config.h"
#include "heddle/train/run/run_paths.h"
#include "heddle/train/run/state.h"

namespace heddle::train {

/// All that a run writes beside RUN/state; train.json, which makes a folder a run, is the last.
inline constexpr std::array kRunNames = {
    "last",      "best",        "cache",           "data",
    "log.jsonl", "report.html", "tokenizer.model", "target_tokenizer.model",
    "tokenizer", "train.json"};

/// What RUN/train.json holds.
struct RunSettings {
  TrainConfig config;
  RunPaths paths;  ///< absolute
};

/// The paths with those that are empty taken from `stored`.
RunPaths or_else(RunPaths paths, const RunPaths& stored);
RunPaths made_absolute(RunPaths paths);

/// True if the folder holds a run.
bool is_run(const std::string& run);
/// Errors: data if there is none or it is broken.
RunSettings load_settings(const std::string& run);
/// The config alone.
TrainConfig stored_config(const std::string& run);
/// Writes RUN/train.json. Errors: system.
void save_settings(const std::string& run, const RunSettings& settings);

/// Errors: usage, naming the first field that differs and is no limit.
void check_same_config(const TrainConfig& stored, const TrainConfig& wanted,
                       const std::string& run);
/// Errors: usage if the folder holds anything but what a killed start leaves.
void check_empty(const std::string& run);

/// Removes all that a run writes, and nothing else; train.json last, and the lock stays.
void clear_run(const std::string& run, StateFolder& state);
/// Removes half-written files that killed processes have left.
void remove_temporaries(const std::string& run);

}  // namespace heddle::train
