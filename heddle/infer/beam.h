// Beam search or samples of one sentence: hypotheses that go on, and those that ended.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heddle/infer/best_words.h"

namespace heddle {

/// A beginning of a translation, or a whole one.
struct Hypothesis {
  std::vector<int32_t> ids;   ///< words so far
  std::vector<int32_t> rows;  ///< rows of the cache that hold the keys of start and words
  double log_p = 0;           ///< sum over the words
  int64_t sample = 0;         ///< which of the samples it is
  double score = 0;           ///< of one that ended: log p over the length penalty
};

struct BeamOptions {
  int64_t beam = 1;
  int64_t n_best = 1;    ///< translations wanted, <= beam unless sampled
  bool samples = false;  ///< n_best draws, each on its own, instead of a search
  double length_penalty = 1;
  int64_t max_length = 1;  ///< words and end
  int32_t eos = 3;
};

/// ((5 + length) / 6)^alpha. Source: Wu et al. 2016, eq. (14).
double length_penalty(int64_t length, double alpha);

/// Continuations wanted of each hypothesis: one if greedy, else twice the beam.
int64_t continuations(int64_t beam);

class BeamSearch {
 public:
  explicit BeamSearch(const BeamOptions& options);

  /// Hypotheses that go on, best first; empty once the search is done.
  std::span<const Hypothesis> live() const { return live_; }
  std::span<Hypothesis> live() { return live_; }
  /// The next word is the last that fits: it must be the end.
  bool must_end() const { return length_ + 1 >= options_.max_length; }

  /// One step. next: continuations(beam) words of each live hypothesis, best first; of samples one.
  void advance(std::span<const NextWord> next);

  /// The n_best hypotheses that ended, best first, fewer if there were no more; samples in order.
  /// To be asked for when live() is empty. A larger n_best changes none of the first.
  std::span<const Hypothesis> results() const { return ended_; }
  /// Those that ended in the last step, with their scores, whether or not they are among the best.
  std::span<const Hypothesis> just_ended() const { return just_ended_; }

 private:
  void advance_samples(std::span<const NextWord> next);
  void finish(const Hypothesis& parent, double log_p);
  bool can_improve() const;

  BeamOptions options_;
  int64_t length_ = 0;  // words of the live hypotheses
  std::vector<Hypothesis> live_;
  int64_t finished_ = 0;
  std::vector<Hypothesis> ended_, just_ended_;
};

}  // namespace heddle
