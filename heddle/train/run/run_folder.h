// RUN, the folder of a training run: what it was begun with, whose it is, its log, making, clearing
// and replacing it.
#pragma once

#include <array>
#include <string>

#include "heddle/train/config.h"
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
/// Errors: usage, naming what is missing, if a run that is to go on with `config` has lost the
/// state that it saved: beginning at update 0, it would replace a model that was trained for
/// longer. A run that was killed before its first save has none to lose.
void check_has_state(const std::string& run, const TrainConfig& config);
/// Errors: usage if the folder holds anything but what a killed start leaves.
void check_empty(const std::string& run);

/// Removes all that a run writes, and nothing else; train.json last, and the lock stays.
void clear_run(const std::string& run, StateFolder& state);
/// Removes the tokenizers that a run has made, and nothing else.
void clear_tokenizers(const std::string& run);
/// Removes half-written files that killed processes have left.
void remove_temporaries(const std::string& run);

// --- a run that is replaced ---

// RUN/replaced: the run that `train --overwrite` is about to replace, until the new one has a
// model. A kill leaves one of these, told apart by which train.json are there; settle_replaced()
// knows:
// - RUN has one, RUN/replaced has none: moving there or back was cut short, all goes back.
// - RUN/replaced has one, RUN has none: no new run has begun, or moving back was cut short; the
//   same.
// - Both, RUN has no committed state: the new run was stopped before its first save, it goes.
// - Both, RUN has a state without a model: both stay; the new run goes on, or is replaced in turn.
// - Both, RUN has a state with a model: only the removal of RUN/replaced is left to do.

/// True if an earlier run is kept in RUN/replaced.
bool keeps_replaced(const std::string& run);

/// Errors: usage, naming it, if something that the new run reads lies in RUN, or if something that
/// is not heddle's has the name RUN/replaced.
void check_can_replace(const std::string& run, const TrainConfig& config, const RunPaths& paths);

/// Moves all that a run writes to RUN/replaced; the lock stays. If an earlier run is kept there
/// already, that one stays, and what is in RUN, which has no model yet, is removed.
void set_aside(const std::string& run, StateFolder& state);

/// Removes what a new run has written, and puts back what was set aside. True if there was any.
bool put_back(const std::string& run, StateFolder& state);

/// Removes RUN/replaced: the new run has a model, and a state that knows it.
void drop_replaced(const std::string& run);

/// Puts right what a killed start with --overwrite left, and says so; to be called before a run is
/// looked at. Errors: usage if another process trains there.
void settle_replaced(const std::string& run);

// --- RUN/log.jsonl ---

/// What a training run reports, one JSON object a line.
class RunLog {
 public:
  /// Opens the log and cuts it to `bytes`, what the resumed state had written, and there to its
  /// last whole line; a log that somebody made shorter goes on as it is. Errors: system if it
  /// cannot be written.
  RunLog(const std::string& path, int64_t bytes);
  ~RunLog();
  RunLog(const RunLog&) = delete;
  RunLog& operator=(const RunLog&) = delete;

  /// Writes a line through to the file. Errors: system for a full disk.
  void write(const Json& line);
  /// Makes the lines durable: what a state names must not be lost after it. Errors: system.
  void sync() const;
  /// Length of the file in bytes.
  int64_t bytes() const { return bytes_; }

 private:
  std::string path_;
  int fd_;
  int64_t bytes_;
};

}  // namespace heddle::train
