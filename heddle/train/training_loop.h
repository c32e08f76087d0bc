// The loop of a run: updates, validations, saved states.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "heddle/nn/run.h"
#include "heddle/train/ranks/batch_gradient.h"
#include "heddle/train/trainer.h"
#include "heddle/train/update_cost.h"
#include "heddle/train/validation.h"

namespace heddle::train {

/// Whether a run that has got so far, in so many seconds, has reached one of its limits.
bool is_at_end(const TrainConfig& config, const Progression& progression, double seconds);
RunResult make_result(const Progression& progression, double seconds);

/// A run in RUN, on one rank. All ranks make the same calls.
class TrainingLoop {
 public:
  /// options.group must be there. state: of RUN; null on other ranks than 0, which write nothing.
  TrainingLoop(const TrainConfig& config, const RunOptions& options, StateFolder* state);

  /// Loads the state, if there is one, and opens the log behind what it knows. Errors: data if the
  /// data are not those that the run began with; usage if other ranks have others.
  void begin();
  /// To be called behind begin(), see train_model().
  RunResult run();

 private:
  using Clock = std::chrono::steady_clock;

  bool leads() const { return state_ != nullptr; }
  std::string state_path() const;
  std::string last_good() const;
  int64_t epoch() const;
  double seconds() const;
  double share() const;
  int64_t signal() const;
  bool is_over() const;
  bool is_validation_due() const;

  std::optional<Progression> load(NamedTensors& carried);
  void remove_new_caches() const;
  void warn_of_differences() const;
  void check_same_data(const std::string& saved, const std::string& key, const char* what) const;
  void tell(RunEvent event) const;
  RunResult interrupted();
  void note_seconds();
  void update();
  [[noreturn]] void report_bad_tensor(const Parts& parts);
  void name_what_is_bad(const Parts& parts);
  std::string status();
  void log_window();
  void validate();
  void save(bool is_last = false);
  void report_ranks();

  TrainConfig config_;
  std::string out_;
  bool replaces_;  // the run in RUN/replaced, as long as there is no model to take its place
  std::function<void(RunEvent)> on_event_;
  StateFolder* state_;
  dist::Group& group_;
  std::set<std::string> caches_before_;  // rank 0's: files in RUN/cache
  std::unique_ptr<Task> task_;
  nn::Parameters& parameters_;
  BatchGradient gradient_;
  Optimizer optimizer_;
  nn::Run run_;
  UpdateCost cost_;
  Progression p_;
  std::optional<Validation> validation_;
  std::optional<RunLog> log_;  // rank 0's
  BatchReport agreed_;
  Clock::time_point begin_ = Clock::now();
  double seconds_before_ = 0, next_note_ = 0, noted_seconds_ = 0;
};

}  // namespace heddle::train
