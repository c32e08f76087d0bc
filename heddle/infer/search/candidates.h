// Searches that are limited to some tokens each, and their logits.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "heddle/infer/search/best_tokens.h"
#include "heddle/nn/output_rows.h"

namespace heddle {

/// The only tokens that may come in a search; and some of the others, by which these are counted.
struct Candidates {
  std::vector<int32_t> ids = {};              ///< rising
  std::vector<int32_t> suppressed = {};       ///< those, by number in `ids`, that must not come
  std::vector<int32_t> sample = {};           ///< of the ids that are none of these, at even steps
  std::vector<int32_t> columns = {};          ///< of each of `ids`: its column, see CandidateOutput
  std::vector<int32_t> sampled_columns = {};  ///< of each of `sample`
  double each = 0;                            ///< ids that one of the sample stands for

  /// allowed and needed together, each once; of those that are suppressed the needed ones only.
  Candidates(std::span<const int32_t> allowed, std::span<const int32_t> needed,
             std::span<const int32_t> suppressed_ids, int64_t vocab);
  /// The number of an id in `ids`; -1 if it is not there.
  int32_t number_of(int32_t id) const;
};

/// The logits of the candidates of several searches by one product: of the rows of the output
/// projection that one of them may need. A search sees the columns of its own candidates alone, so
/// that what it gets depends on no other.
class CandidateOutput {
 public:
  explicit CandidateOutput(const nn::OutputProjection& output) : output_(output) {}

  /// Holds what these need, and sets their columns; what nobody needs is dropped when it is more
  /// than half.
  void hold(std::span<Candidates* const> all, const nn::Run& run);
  /// Tokens that are held.
  int64_t size() const { return std::ssize(ids_); }

  /// h: [rows, width]    returns: [rows, size()], f32
  Tensor operator()(const Tensor& h) const { return (*rows_)(h); }
  /// For row i the logits of sets[i], side by side, of row numbers[i]; behind them anything.
  /// returns: [numbers, candidates at most]
  Tensor own_columns(const Tensor& logits, std::span<const int64_t> numbers,
                     std::span<const Candidates* const> sets) const;
  /// What log p among the candidates of a row of logits is more than that among all tokens, of
  /// which the others are counted by the sample: 0 or below. log_sum: log sum e^logit of the
  /// candidates
  static float log_share(const float* logits, const Candidates& set, float log_sum);
  /// Tokens of a row, likeliest first, that are numbers among the candidates get their ids, and log
  /// p among all tokens if scores are wanted. logits: of the row, [size()]
  static void name_tokens(std::span<NextToken> tokens, const float* logits, const Candidates& set,
                          bool scores);
  /// The same as own_columns() at the places of their ids, and -infinity between. returns:
  /// [numbers, vocab]
  Tensor in_vocabulary(const Tensor& logits, std::span<const int64_t> numbers,
                       std::span<const Candidates* const> sets, int64_t vocab) const;

 private:
  const nn::OutputProjection& output_;
  std::vector<int32_t> ids_;        // rising
  std::vector<int32_t> column_of_;  // of each id; -1: it is not held
  std::unique_ptr<nn::OutputRows> rows_;
};

}  // namespace heddle
