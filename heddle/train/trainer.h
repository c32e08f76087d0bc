// A training run: updates, validation, saving, resuming. What it is about is a Task's.
#pragma once

#include <functional>
#include <string>

#include "heddle/dist/group.h"
#include "heddle/train/config.h"
#include "heddle/train/run/run_folder.h"
#include "heddle/train/scores.h"

namespace heddle::train {

/// What has just been written to a run's folder.
enum class RunEvent {
  log,         ///< a line of log.jsonl
  validation,  ///< the lines of a validation, its models, and the state
  end          ///< the last state, or an error: the run goes on no longer
};

struct RunOptions {
  RunPaths paths = {};  ///< what is read
  std::string out;      ///< RUN
  /// The run that stands in RUN is replaced: it is kept in RUN/replaced until the new one has been
  /// validated, and so has a model.
  bool overwrite = false;
  /// Called after each event, on the thread that trains: what it takes is training time, what it
  /// throws ends the run.
  std::function<void(RunEvent)> on_event = {};
  /// The processes that train together, each of which calls train_model() with the same config and
  /// paths; RUN and what is read lie where all see them. Null: this one alone.
  dist::Group* group = nullptr;
  bool any_cpu = false;  ///< they may compute by different instructions: to other bits
};

/// How a run ended.
struct RunResult {
  int64_t updates = 0;
  double seconds = 0;  ///< over all resumes
  std::string best_kind;
  ValidationScore best;
  bool was_finished = false;  ///< nothing was left to do
  bool was_interrupted = false;
};

/// Trains, or goes on training, in RUN:
///   train.json   the settings   log.jsonl   what happened      tokenizer.model
///   state/       what a resume needs         cache/             the tokenised text
///   last/        the model of the last validation   best/      the best of all validations
/// A run that was killed and is started again ends in the same bits as one that was not. A finished
/// run is left as it is. Where RUN goes on, options.paths may be empty: the run knows its text.
/// Of a group rank 0 alone writes to RUN and calls options.on_event; all end alike, and in the bits
/// of one process, whatever the number of ranks (config.shards at most).
/// Errors: usage if RUN was begun with another config (names the field) or holds something else;
/// ranks if another rank ends; data for bad text, or if a loss is not finite (names the first bad
/// tensor; the last good state stays); system for a full disk (the last state stays). A run that
/// was to be replaced stands there again if the new one ends by an error before its first save.
RunResult train_model(const TrainConfig& config, const RunOptions& options);

}  // namespace heddle::train
