// Beam search of one sentence: which continuations live, which end, and when nothing can improve;
// and samples, which do not compete.
#include "heddle/infer/beam.h"

#include <algorithm>
#include <cmath>

namespace heddle {
namespace {

struct Candidate {
  double log_p;
  int32_t parent;
  int32_t rank;  // among the parent's continuations: keeps their order where sums round alike
  int32_t id;

  bool operator<(const Candidate& o) const {
    if (log_p != o.log_p) return log_p > o.log_p;
    return parent != o.parent ? parent < o.parent : rank < o.rank;
  }
};

}  // namespace

double length_penalty(int64_t length, double alpha) {
  return std::pow((5.0 + static_cast<double>(length)) / 6.0, alpha);
}

int64_t continuations(int64_t beam) { return beam == 1 ? 1 : 2 * beam; }

BeamSearch::BeamSearch(const BeamOptions& options) : options_(options) {
  live_.resize(options.samples ? static_cast<size_t>(options.n_best) : 1);
  for (size_t i = 0; i < live_.size(); ++i) live_[i].sample = static_cast<int64_t>(i);
}

void BeamSearch::advance(std::span<const NextWord> next) {
  just_ended_.clear();
  if (options_.samples) return advance_samples(next);
  const int64_t per_row = continuations(options_.beam);
  std::vector<Candidate> candidates;
  for (size_t i = 0; i < next.size(); ++i) {
    if (next[i].id < 0) continue;
    const auto parent = static_cast<int32_t>(static_cast<int64_t>(i) / per_row);
    const auto rank = static_cast<int32_t>(static_cast<int64_t>(i) % per_row);
    candidates.push_back({live_[parent].log_p + next[i].log_p, parent, rank, next[i].id});
  }
  const auto wanted = std::min<int64_t>(per_row, static_cast<int64_t>(candidates.size()));
  std::partial_sort(candidates.begin(), candidates.begin() + wanted, candidates.end());

  std::vector<Hypothesis> going_on;
  for (int64_t i = 0; i < wanted && static_cast<int64_t>(going_on.size()) < options_.beam; ++i) {
    const Candidate& c = candidates[i];
    if (c.id == options_.eos) {
      // An end counts among the first `beam` only, so that beam 1 is greedy.
      if (i < options_.beam) finish(live_[c.parent], c.log_p);
      continue;
    }
    Hypothesis h = live_[c.parent];
    h.ids.push_back(c.id);
    h.log_p = c.log_p;
    going_on.push_back(std::move(h));
  }
  ++length_;
  live_ = std::move(going_on);
  if (finished_ >= options_.beam || !can_improve()) live_.clear();
}

void BeamSearch::advance_samples(std::span<const NextWord> next) {
  std::vector<Hypothesis> going_on;
  for (size_t i = 0; i < next.size(); ++i) {
    Hypothesis& h = live_[i];
    h.log_p += next[i].log_p;
    if (next[i].id == options_.eos) {
      finish(h, h.log_p);
      continue;
    }
    h.ids.push_back(next[i].id);
    going_on.push_back(std::move(h));
  }
  ++length_;
  live_ = std::move(going_on);
}

void BeamSearch::finish(const Hypothesis& parent, double log_p) {
  const double score = log_p / length_penalty(length_ + 1, options_.length_penalty);
  ++finished_;
  Hypothesis& just = just_ended_.emplace_back(parent);
  just.log_p = log_p;
  just.score = score;
  const auto behind = std::find_if(ended_.begin(), ended_.end(), [&](const Hypothesis& h) {
    return options_.samples ? h.sample > parent.sample : h.score < score;
  });
  if (behind == ended_.end() && static_cast<int64_t>(ended_.size()) == options_.n_best) return;
  ended_.insert(behind, just);
  if (static_cast<int64_t>(ended_.size()) > options_.n_best) ended_.pop_back();
}

// Sums of log p only fall, and the penalty is monotone: its best is at the shortest or the greatest
// length.
bool BeamSearch::can_improve() const {
  if (static_cast<int64_t>(ended_.size()) < options_.n_best || live_.empty()) {
    return !live_.empty();
  }
  const double alpha = options_.length_penalty;
  const double bound = std::max(live_[0].log_p / length_penalty(length_ + 1, alpha),
                                live_[0].log_p / length_penalty(options_.max_length, alpha));
  return bound > ended_.back().score;
}

}  // namespace heddle
