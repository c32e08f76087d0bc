// Beam search or samples of one sequence: hypotheses that go on, and those that ended.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "heddle/infer/search/next_tokens.h"
#include "heddle/infer/search/search_config.h"

namespace heddle {

enum class EndedBy {
  nothing,  ///< it goes on
  eos,      ///< a token that is an end, which its tokens do not hold
  stop,     ///< GoesOn
  length,   ///< the greatest length
};

/// A beginning of a translation or continuation, or a whole one.
struct Hypothesis {
  std::vector<int32_t> ids = {};   ///< tokens so far
  std::vector<float> log_ps = {};  ///< of each of them
  double log_p = 0;                ///< sum over the tokens, and the end if it came
  int64_t sample = 0;              ///< which of the samples it is
  int64_t parent = 0;              ///< number among live() of the last step that it goes on from
  double score = 0;                ///< of one that ended: log p over the length penalty
  EndedBy ended = EndedBy::nothing;
};

/// One step of the search of one sequence, for who wants to watch.
struct DecodeStep {
  int64_t sentence = 0;                     ///< its number among the sources or prompts
  std::span<const Hypothesis> before;       ///< that went on until here, best first
  Tensor logits;                            ///< [before, vocab] of the next token, before any rule
  std::span<const Hypothesis> live, ended;  ///< what has become of them
};

/// What log p is divided by: heddle's own models, or Hugging Face's generation.
enum class LengthPenalty {
  wu,     ///< ((5 + length) / 6)^alpha: Wu et al. 2016, eq. (14)
  power,  ///< length^alpha
};

/// ((5 + length) / 6)^alpha or length^alpha. length >= 1
double length_penalty(int64_t length, double alpha, LengthPenalty kind = LengthPenalty::wu);

/// Asked of each hypothesis with a new token that is no end: false ends it with this token. Greedy
/// search and samples ask once a token, in order.
using GoesOn = std::function<bool(const Hypothesis&)>;

class BeamSearch {
 public:
  /// search: as its check() allows    max_length: tokens and end, at least 1
  BeamSearch(const SearchConfig& search, LengthPenalty penalty, int64_t max_length,
             GoesOn goes_on = {});

  /// Continuations wanted of each hypothesis: one if greedy, else the beam for each end and once
  /// more, so that as many may go on whatever ends.
  int64_t continuations() const;
  /// Ids that end a sequence; may be empty.
  std::span<const int32_t> ends() const { return ends_; }
  /// Hypotheses that go on, best first; empty once the search is done.
  std::span<const Hypothesis> live() const { return live_; }
  /// The next token is the last that fits.
  bool is_last() const { return length_ + 1 >= max_length_; }

  /// One step. next: continuations() tokens of each live hypothesis, best first; of samples one.
  void advance(std::span<const NextToken> next);

  /// The n_best hypotheses that ended, best first, fewer if there were no more; samples in order.
  /// To be asked for when live() is empty. A larger n_best changes none of the first.
  std::span<const Hypothesis> results() const {
    return std::span(ended_).first(std::min(ended_.size(), n_best_));
  }
  /// Those that ended in the last step, with their scores, whether or not they are among the best.
  std::span<const Hypothesis> just_ended() const { return just_ended_; }

 private:
  double score(double log_p, int64_t length) const {
    return log_p / length_penalty(length, alpha_, penalty_);
  }
  // The hypothesis with one more token, its sum of log p being log_p.
  Hypothesis extended(const Hypothesis& h, const NextToken& token, double log_p) const;
  void advance_beam(std::span<const NextToken> next);
  void advance_samples(std::span<const NextToken> next);
  void finish(Hypothesis h);
  bool can_improve() const;
  bool is_done() const;

  const std::string early_stopping_;
  const LengthPenalty penalty_;
  const int64_t beam_, max_length_;
  const size_t n_best_, kept_;  // hypotheses that ended and are kept: kept_
  const bool samples_;
  const double alpha_;
  const std::vector<int32_t> ends_;
  const GoesOn goes_on_;
  int64_t length_ = 0;  // tokens of the live hypotheses
  std::vector<Hypothesis> live_;
  int64_t finished_ = 0;
  std::vector<Hypothesis> ended_, just_ended_;
};

}  // namespace heddle
