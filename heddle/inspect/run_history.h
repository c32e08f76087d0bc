// What a training run has logged so far, for its report and for comparisons.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "heddle/inspect/pages/page.h"
#include "heddle/train/run/run_folder.h"
#include "heddle/train/scores.h"
#include "heddle/train/trainer.h"

namespace heddle::inspect {

/// A line of log.jsonl about updates.
struct LoggedUpdates {
  int64_t update = 0, epoch = 0;
  double loss = 0, nll = 0;  ///< nats per token: what is minimised, and the labels' share alone
  double gradient_norm = 0, learning_rate = 0, per_second = 0;
  double seconds = 0;  ///< since the run began, over all resumes
};

/// A line of log.jsonl about a validation.
struct LoggedValidation {
  int64_t update = 0;
  std::string kind = {};  ///< "snapshot", "ema", "average"
  train::ValidationScore score = {};
  bool is_best = false;
  double seconds = 0;
  /// Held-out samples and what the model makes of them: fields with their texts, as the task names
  /// them ("source", "translation").
  using Sample = std::vector<std::pair<std::string, std::string>>;
  std::vector<Sample> samples = {};
  Json findings = {};  ///< see train::Task::findings()
};

/// A line of log.jsonl about ranks: what their time went to since the run was begun or resumed.
struct LoggedRanks {
  int64_t update = 0;  ///< the last one
  Json ranks = {};     ///< see train::times_of_ranks()
};

struct RunHistory {
  std::string path = {}, name = {};
  train::TrainConfig config = {};
  bool has_teacher = false;  ///< as a part of the loss
  std::vector<LoggedUpdates> updates = {};
  std::vector<LoggedValidation> validations = {};
  std::vector<LoggedRanks> ranks = {};  ///< where the run had several
  Json images = {};          ///< what a run over images shows, see train::kShownImagesName
  int64_t done = 0;          ///< updates, logged or saved
  double seconds = 0;        ///< that they took, over all resumes
  bool is_finished = false;  ///< as its state says

  /// The best validation, or null.
  const LoggedValidation* best() const;
};

/// What paths are called on a page: "m30k" of "runs/m30k/", "m30k/best" of its model, and of paths
/// that share their last name as much more as tells them apart, "a/m30k" and "b/m30k".
std::vector<std::string> short_names(const std::vector<std::string>& paths);

/// Reads RUN/train.json, RUN/log.jsonl and where RUN/state stands; a last line that is still being
/// written is left out. Errors: data if there is no run, or a file is broken (names file and line).
RunHistory read_history(const std::string& run);

/// Writes RUN/report.html: losses, scores, learning rate, speed, gradient norms, and the samples of
/// each validation. The page of a run that goes on loads itself again until it is written without.
/// Errors: those of read_history() and write_page().
void write_run_report(const std::string& run, bool is_going_on);

/// A RunOptions::on_event that writes the report after validations and at the end, and otherwise at
/// most twice a minute. A report that cannot be written is one warning; training goes on.
std::function<void(train::RunEvent)> report_writer(const std::string& run);

/// Several runs over each other on one page, with the fields in which they differ; of one run its
/// report.
Page comparison_page(const std::vector<RunHistory>& runs);

/// Fields in which at least two runs differ; a value a run, as a flag would give it.
struct DifferingField {
  std::string key;
  std::vector<std::string> values;
};
std::vector<DifferingField> differing_fields(const std::vector<RunHistory>& runs);

}  // namespace heddle::inspect
