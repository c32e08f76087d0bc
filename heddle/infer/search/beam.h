// A step of beam search or samples: the next tokens of each hypothesis by rules and draws; then
// which hypotheses of a sequence go on, and which ended.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "heddle/infer/search/best_tokens.h"
#include "heddle/infer/search/candidates.h"
#include "heddle/infer/search/search_config.h"

namespace heddle {

struct NextTokensOptions {
  /// Its rules: how often a token or an n-gram may come, how early the end; and how a token is
  /// drawn if it samples.
  const SearchConfig* search = nullptr;
  int64_t count = 1;                         ///< tokens wanted of a row; 1 if they are drawn
  std::span<const int32_t> suppressed = {};  ///< SearchConfig::suppressed_ids()
  std::vector<std::vector<int32_t>> banned_ngrams = {};  ///< SearchConfig::banned_ngrams()
  std::span<const int32_t> ends = {};                    ///< SearchConfig::ends()
  bool scores = true;  ///< whether log p is wanted; without, it is 0
  /// Whether the penalty for repeats is one of log p and the rest keeps its share, as in Hugging
  /// Face's beam search, or one of logits, as in its greedy search and sampling.
  bool penalises_log_p = false;
  const Candidates* candidates = nullptr;  ///< the only tokens that there are; null: all
};

/// What the next token of a row follows, and how it is chosen.
struct TokensSoFar {
  const NextTokensOptions* options = nullptr;
  std::span<const int32_t> before = {};  ///< tokens that were given: rules count them too
  std::span<const int32_t> tokens = {};  ///< tokens that were chosen
  int32_t forced = -1;                   ///< the only token that may come; -1: any
  double draw = 0;                       ///< of sampling, see sample_draw()
  const TokenSet* allowed = nullptr;     ///< the only tokens that may come; null: any
};

/// The tokens of each row, likeliest first. Where rules leave no token there is the end, or, of a
/// model without one, what the rules forbid. All rows share one pass over the vocabulary; logits of
/// rows with rules or sampling are kept whole. h: [rows, width] states    returns: the tokens of
/// one row behind those of another, `options->count` of each; where there are candidates, log p
/// counts the other tokens by a sample. limited: holds the candidates, where a row has some
/// Errors: data if a row has no finite maximum.
std::vector<NextToken> next_tokens(const nn::OutputProjection& output, const Tensor& h,
                                   const nn::Run& run, std::span<const TokensSoFar> rows,
                                   const CandidateOutput* limited = nullptr);

/// The number in [0, 1) that draws a token: a pure function of seed, line, sample (which of several
/// translations of the line) and position of the token, so it depends on nothing that is computed
/// beside it. 53 bits.
double sample_draw(uint64_t seed, int64_t line, int64_t sample, int64_t position);

/// What may come in a row, see BestTokensRow.
struct SampleRow {
  const SearchConfig* search = nullptr;  ///< temperature and limits; null: the row is passed over
  double draw = 0;                       ///< in [0, 1)
  std::span<const int32_t> suppressed = {};
  std::span<const int32_t> banned = {};
  int32_t forced = -1;
  const TokenSet* allowed = nullptr;  ///< the only ids that may come; null: any
};

/// For each row that is not passed over one token: the first, by id, at which the running sum of
/// the probabilities that are left, in f64, exceeds `draw` of their total. log p is that of the
/// logits as they are, before temperature and limits; with renormalize_logits that among what these
/// left. id -1 if no token may come. logits: [rows, vocab] f32 Errors: data if a row has no finite
/// maximum. Source: top-p Holtzman et al. 2020, min-p Nguyen et al. 2024.
std::vector<NextToken> sample_tokens(const Tensor& logits, std::span<const SampleRow> rows);

// --- which hypotheses go on ----------------------------------------------------------------------

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
  bool is_cut = false;  ///< it ended because there was no more room: by its length, or by an end
                        ///< that was forced where another token would have come
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
  /// search: as its check() allows    longest_output: tokens and end, at least 1
  BeamSearch(const SearchConfig& search, LengthPenalty penalty, int64_t longest_output,
             GoesOn goes_on = {});

  /// Continuations wanted of each hypothesis: one if greedy, else the beam for each end and once
  /// more, so that as many may go on whatever ends.
  int64_t continuations() const;
  /// Ids that end a sequence; may be empty.
  std::span<const int32_t> ends() const { return ends_; }
  /// Hypotheses that go on, best first; empty once the search is done.
  std::span<const Hypothesis> live() const { return live_; }
  /// The next token is the last that fits.
  bool is_last() const { return length_ + 1 >= longest_output_; }

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
  const int64_t beam_, longest_output_;
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
