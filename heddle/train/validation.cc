// Scoring, comparing, keeping weights.
#include "heddle/train/validation.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "heddle/base/files/files.h"
#include "heddle/base/log.h"
#include "heddle/base/profile.h"
#include "heddle/base/rounded.h"
#include "heddle/dist/share_out.h"
#include "heddle/train/not_finite.h"
#include "heddle/train/ranks/rank_messages.h"

namespace heddle::train {

Validation::Validation(const TrainConfig& config, std::string out, Task& task, StateFolder* state,
                       dist::Group& group, std::function<double()> seconds,
                       std::function<std::string()> last_good)
    : config_(config),
      out_(std::move(out)),
      task_(&task),
      state_(state),
      group_(&group),
      seconds_(std::move(seconds)),
      last_good_(std::move(last_good)) {}

void Validation::validate(Progression& progression, RunLog* log, const nn::Run& run,
                          std::vector<Tensor> ema) {
  const ProfilePhase phase("validation");
  p_ = &progression, log_ = log;
  ++p_->without_better;
  p_->validated_update = p_->update;
  const ValidationScore snapshot = score(run);
  if (leads()) {
    samples_ = task_->samples();
    task_->save_model(join_path(out_, "last"));
  }
  consider("snapshot", snapshot);
  if (!ema.empty()) consider("ema", run, std::move(ema));
  if (config_.average == "none") return;
  keep(snapshot);
  if (p_->kept.size() > 1) consider("average", run, average_of_kept());
}

// Rank 0 alone is sure to see what it has kept.
std::vector<Tensor> Validation::average_of_kept() const {
  std::vector<Tensor> average;
  if (leads()) average = state_->average(p_->kept, task_->parameters());
  return told_by_rank_0(*group_, task_->parameters(), std::move(average));
}

ValidationScore Validation::validate_plainly(const nn::Run& run) {
  nn::Run plain = run;
  plain.dropout.training = false;
  return task_->validate(plain, *group_);
}

ValidationScore Validation::score(const nn::Run& run) {
  const ValidationScore s = validate_plainly(run);
  if (std::isfinite(s.loss)) return s;
  dist::do_alike(*group_, [&] { check_weights(task_->parameters(), p_->update, last_good_()); });
  name_bad_tensor("validation loss", p_->update, last_good_(), [&] { validate_plainly(run); });
  dist::fail_together(
      *group_, ErrorKind::data,
      fmt::format("update {}: the validation loss is {}. {}", p_->update, s.loss, last_good_()));
}

// Scores other weights while they stand in for the model's own.
void Validation::consider(const std::string& kind, const nn::Run& run,
                          std::vector<Tensor> weights) {
  {
    const WeightSwap swap(task_->parameters(), std::move(weights));
    task_->parameters_changed();
    consider(kind, score(run));
  }
  task_->parameters_changed();
}

// What chooses a model: the mean over the last validations of its kind, as one alone is noisy.
double Validation::smoothed_cost(const std::string& kind, const ValidationScore& s) {
  std::vector<double>& costs = p_->recent_costs[kind];
  costs.push_back(s.cost(config_.select));
  if (std::ssize(costs) > config_.select_window) costs.erase(costs.begin());
  // A mean over fewer is behind any over more: a lucky first one would stay the best.
  constexpr double kMissing = 1e9;
  const auto count = static_cast<double>(costs.size());
  return std::accumulate(costs.begin(), costs.end(), 0.0) / count +
         kMissing * (static_cast<double>(config_.select_window) - count);
}

// The loss decides between equals.
bool Validation::is_better(double cost, const ValidationScore& s) const {
  if (p_->best_kind.empty()) return true;
  return cost != p_->best_cost ? cost < p_->best_cost : s.loss < p_->best.loss;
}

// Notes and logs a score; if it is the best, the weights in place go to best/.
void Validation::consider(const std::string& kind, const ValidationScore& s) {
  const double cost = smoothed_cost(kind, s);
  const bool better = is_better(cost, s);
  const double stop = s.cost(config_.early_stop == "none" ? "loss" : config_.early_stop);
  if (p_->best_kind.empty() || stop < p_->stop_best) {
    p_->stop_best = stop;
    p_->without_better = 0;
  }
  if (leads()) log_score(kind, s, better);
  if (!better) return;
  p_->best_update = p_->update;
  p_->best_kind = kind;
  p_->best = s;
  p_->best_cost = cost;
  if (leads()) task_->save_model(join_path(out_, "best"));
}

void Validation::log_score(const std::string& kind, const ValidationScore& s, bool better) {
  Json line = Json::object({{"update", p_->update}, {"validation", kind}, {"loss", s.loss}});
  std::string shown;
  for (const Metric& m : s.metrics) {
    line[m.name] = m.value;
    if (m.half_width > 0) line[m.name + kHalfWidth] = m.half_width;
    shown += "  " + to_text(m);
  }
  line["best"] = better;
  if (Json findings = task_->findings(); !findings.is_null()) {
    line["findings"] = std::move(findings);
  }
  for (Json& sample : std::exchange(samples_, {})) line["samples"].push_back(std::move(sample));
  line["seconds"] = rounded(seconds_(), 1);
  log_->write(line);
  log_info("update {}  {:8}  validation loss {:.4f}{}{}", p_->update, kind, s.loss, shown,
           better ? "  *" : "");
}

// Keeps the weights for the average: the last, or the best, average_count of all validations.
void Validation::keep(const ValidationScore& s) {
  if (leads()) state_->keep_weights(p_->update, task_->parameters());
  p_->kept.push_back({p_->update, s});
  if (static_cast<int64_t>(p_->kept.size()) <= config_.average_count) return;
  auto worst = p_->kept.begin();
  if (config_.average == "best") {
    worst = std::ranges::max_element(
        p_->kept, {}, [this](const KeptWeights& k) { return k.score.cost(config_.select); });
  }
  p_->kept.erase(worst);
}

}  // namespace heddle::train
