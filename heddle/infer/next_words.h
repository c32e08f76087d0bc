// The next word of each hypothesis: rules first, then the likeliest or a draw.
#pragma once

#include <optional>

#include "heddle/infer/best_words.h"
#include "heddle/infer/sample.h"
#include "heddle/infer/word_rules.h"

namespace heddle {

struct NextWordsOptions {
  int64_t count = 1;                         ///< words wanted of each row; 1 if they are drawn
  std::span<const int32_t> suppressed = {};  ///< ids that never come
  std::span<const int32_t> eos = {};         ///< ids that end a sequence; may be empty
  WordRules rules = {};
  std::optional<Sampling> sampling = {};
  bool scores = true;  ///< whether log p is wanted; without, it is 0
  /// Whether the penalty for repeats is one of log p and the rest keeps its share, as in Hugging
  /// Face's beam search, or one of logits, as in its greedy search and sampling.
  bool penalises_log_p = false;
};

/// What the next word of a row follows.
struct WordsSoFar {
  std::span<const int32_t> before = {};  ///< words that were given: rules count them too
  std::span<const int32_t> words = {};   ///< words that were chosen
  int32_t forced = -1;                   ///< the only word that may come; -1: any
  double draw = 0;                       ///< of sampling, see sample_draw()
};

/// The `count` words of each row, likeliest first. Where rules leave no word there is the end, or,
/// of a model without one, what the rules forbid.
/// h: [rows, width] states    returns: [rows * count]
/// Errors: data if a row has no finite maximum.
std::vector<NextWord> next_words(const nn::WordOutput& output, const Tensor& h, const nn::Run& run,
                                 std::span<const WordsSoFar> rows, const NextWordsOptions& options);

}  // namespace heddle
