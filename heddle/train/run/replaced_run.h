// RUN/replaced: the run that `train --overwrite` is about to replace, until the new one has a
// model.
#pragma once

#include <string>

#include "heddle/train/config.h"
#include "heddle/train/run/run_paths.h"
#include "heddle/train/run/state.h"

namespace heddle::train {

// A kill leaves one of these, told apart by which train.json are there; settle_replaced() knows:
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

}  // namespace heddle::train
