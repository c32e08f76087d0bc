// What a validation does: scores of the weights and of their averages, and the best model of all.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "heddle/dist/group.h"
#include "heddle/train/run/run_folder.h"
#include "heddle/train/run/state.h"
#include "heddle/train/tasks/task.h"

namespace heddle::train {

/// Of a run, whose parts must live as long. The ranks share what is scored; rank 0 alone has a
/// state folder and a log, and writes.
class Validation {
 public:
  /// state: rank 0's, null on others. seconds: what the run has taken so far. last_good: a sentence
  /// on the last good state.
  Validation(const TrainConfig& config, std::string out, Task& task, StateFolder* state,
             dist::Group& group, std::function<double()> seconds,
             std::function<std::string()> last_good);

  /// Scores the weights, their moving average (`ema`, one tensor a parameter; empty: none is kept)
  /// and the average of kept ones; the best goes to RUN/best, the weights to RUN/last. Notes in
  /// `progression` what it found, the same on all ranks, which all call it. log: null on ranks
  /// other than 0. Errors: data if a loss is not finite, naming the tensor.
  void validate(Progression& progression, RunLog* log, const nn::Run& run, std::vector<Tensor> ema);

 private:
  ValidationScore validate_plainly(const nn::Run& run);
  ValidationScore score(const nn::Run& run);
  void consider(const std::string& kind, const nn::Run& run, std::vector<Tensor> weights);
  void consider(const std::string& kind, const ValidationScore& s);
  void log_score(const std::string& kind, const ValidationScore& s, bool better);
  double smoothed_cost(const std::string& kind, const ValidationScore& s);
  bool is_better(double cost, const ValidationScore& s) const;
  std::vector<Tensor> average_of_kept() const;
  bool leads() const { return state_ != nullptr; }
  void keep(const ValidationScore& s);

  TrainConfig config_;
  std::string out_;
  Task* task_;
  StateFolder* state_;
  dist::Group* group_;
  std::function<double()> seconds_;
  std::function<std::string()> last_good_;
  Progression* p_ = nullptr;  // of the validation that is under way
  RunLog* log_ = nullptr;
  std::vector<Json> samples_;  // of the weights that are logged next
};

}  // namespace heddle::train
