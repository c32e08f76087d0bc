// Beam search of one sequence: which continuations live, which end, and when nothing can improve;
// and samples, which do not compete.
#include "heddle/infer/search/beam.h"

#include <algorithm>
#include <cmath>

namespace heddle {
namespace {

struct BeamCandidate {
  double log_p;
  int32_t parent;
  int32_t rank;  // among the parent's continuations: keeps their order where sums round alike
  NextToken token;

  bool operator<(const BeamCandidate& o) const {
    if (log_p != o.log_p) return log_p > o.log_p;
    return parent != o.parent ? parent < o.parent : rank < o.rank;
  }
};

}  // namespace

double length_penalty(int64_t length, double alpha, LengthPenalty kind) {
  const auto n = static_cast<double>(length);
  return std::pow(kind == LengthPenalty::wu ? (5.0 + n) / 6.0 : n, alpha);
}

BeamSearch::BeamSearch(const SearchConfig& search, LengthPenalty penalty, int64_t max_length,
                       GoesOn goes_on)
    : early_stopping_(search.early_stopping),
      penalty_(penalty),
      beam_(search.beam.value_or(1)),
      max_length_(max_length),
      n_best_(static_cast<size_t>(search.n_best)),
      kept_(static_cast<size_t>(search.samples ? search.n_best : std::max(beam_, search.n_best))),
      samples_(search.samples),
      alpha_(search.length_penalty.value_or(1)),
      ends_(search.ends()),
      goes_on_(std::move(goes_on)) {
  live_.resize(samples_ ? n_best_ : 1);
  for (size_t i = 0; i < live_.size(); ++i) live_[i].sample = static_cast<int64_t>(i);
}

int64_t BeamSearch::continuations() const {
  return beam_ == 1 ? 1 : beam_ * std::max<int64_t>(2, 1 + std::ssize(ends_));
}

void BeamSearch::advance(std::span<const NextToken> next) {
  just_ended_.clear();
  if (samples_) {
    advance_samples(next);
  } else {
    advance_beam(next);
  }
  ++length_;
  if (!samples_ && is_done()) live_.clear();
}

void BeamSearch::advance_beam(std::span<const NextToken> next) {
  const int64_t per_row = continuations();
  std::vector<BeamCandidate> candidates;
  for (size_t i = 0; i < next.size(); ++i) {
    if (next[i].id < 0) continue;
    const auto parent = static_cast<int32_t>(static_cast<int64_t>(i) / per_row);
    const auto rank = static_cast<int32_t>(static_cast<int64_t>(i) % per_row);
    candidates.push_back({live_[parent].log_p + next[i].log_p, parent, rank, next[i]});
  }
  const auto wanted = std::min<int64_t>(per_row, static_cast<int64_t>(candidates.size()));
  std::partial_sort(candidates.begin(), candidates.begin() + wanted, candidates.end());

  // What ends counts among the first `beam` only, so that beam 1 is greedy.
  std::vector<Hypothesis> going_on;
  for (int64_t i = 0; i < wanted && static_cast<int64_t>(going_on.size()) < beam_; ++i) {
    const BeamCandidate& c = candidates[i];
    Hypothesis h = extended(live_[c.parent], c.token, c.log_p);
    h.parent = c.parent;
    if (h.ended == EndedBy::nothing) {
      going_on.push_back(std::move(h));
    } else if (i < beam_) {
      finish(std::move(h));
    }
  }
  live_ = std::move(going_on);
}

void BeamSearch::advance_samples(std::span<const NextToken> next) {
  std::vector<Hypothesis> going_on;
  for (size_t i = 0; i < next.size(); ++i) {
    Hypothesis h = extended(live_[i], next[i], live_[i].log_p + next[i].log_p);
    h.parent = static_cast<int64_t>(i);
    if (h.ended == EndedBy::nothing) {
      going_on.push_back(std::move(h));
    } else {
      finish(std::move(h));
    }
  }
  live_ = std::move(going_on);
}

Hypothesis BeamSearch::extended(const Hypothesis& h, const NextToken& token, double log_p) const {
  Hypothesis longer = h;
  longer.log_p = log_p;
  if (contains(ends_, token.id)) {
    longer.ended = EndedBy::eos;
    return longer;
  }
  longer.ids.push_back(token.id);
  longer.log_ps.push_back(token.log_p);
  if (goes_on_ && !goes_on_(longer)) {
    longer.ended = EndedBy::stop;
  } else if (is_last()) {
    longer.ended = EndedBy::length;
  }
  return longer;
}

void BeamSearch::finish(Hypothesis h) {
  h.score = score(h.log_p, length_ + 1);
  ++finished_;
  const auto behind = std::find_if(ended_.begin(), ended_.end(), [&](const Hypothesis& other) {
    return samples_ ? other.sample > h.sample : other.score < h.score;
  });
  just_ended_.push_back(h);
  if (behind == ended_.end() && ended_.size() == kept_) return;
  ended_.insert(behind, std::move(h));
  if (ended_.size() > kept_) ended_.pop_back();
}

bool BeamSearch::is_done() const {
  if (live_.empty()) return true;
  const bool is_full = finished_ >= beam_;
  if (early_stopping_ == "true") return is_full || !can_improve();
  if (early_stopping_ == "never") return !can_improve();
  return is_full && score(live_[0].log_p, length_) <= ended_.back().score;
}

// Sums of log p only fall, and the penalty is monotone: its best is at the shortest or the greatest
// length.
bool BeamSearch::can_improve() const {
  if (ended_.size() < n_best_) return true;
  const double bound =
      std::max(score(live_[0].log_p, length_ + 1), score(live_[0].log_p, max_length_));
  return bound > ended_[n_best_ - 1].score;
}

}  // namespace heddle
