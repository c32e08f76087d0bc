// Sequences of tokens laid end to end, and what is to be predicted of them: tokens that are hidden,
// tokens in an order of their own, classes.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "heddle/data/labelled.h"
#include "heddle/data/masking.h"
#include "heddle/nn/relative/relative_rows.h"
#include "heddle/text/tokenizer.h"

namespace heddle::train {

struct SequenceBatch {
  std::vector<int32_t> ids, types;  ///< [rows]; types may be empty: all 0
  std::vector<int32_t> targets;     ///< [rows] or [sequences]; negative ones do not count
  std::vector<int64_t> lengths;     ///< [sequences]
  RowIds rows;                      ///< names of the rows, for dropout
  /// Where tokens become known in an order of their own: then `targets` are the predicted ones, one
  /// a prediction, of which each sequence has so many.
  nn::TokenOrder order;
  std::vector<int64_t> predictions;

  /// Lays a sequence, of the sample of this number, behind the others, with its targets and types.
  void add(std::span<const int32_t> sequence, int64_t sample,
           std::span<const int32_t> its_targets = {}, std::span<const int32_t> its_types = {});
  /// The same of one with an order, whose targets it chooses.
  void add(std::span<const int32_t> sequence, std::span<const int32_t> its_types, int64_t sample,
           const Permutation& permutation);
  /// As models take them; they point into this batch.
  nn::TokenRows tokens();

  Segments segments;
};

using Chunks = std::vector<std::vector<int32_t>>;

/// Documents in chunks of at most `most` tokens.
Chunks chunks_of(const std::vector<std::vector<int32_t>>& documents, int64_t most);
/// All of them with -1 behind each: what tells one set of sequences from another.
std::vector<int32_t> joined(const Chunks& chunks);

/// The epoch whose masked tokens held-out text has, each time.
inline constexpr int64_t kHeldOutEpoch = -1;

struct HidingOptions {
  double share = 0.15;  ///< of the tokens that are predicted
  uint64_t seed = 1;
  int64_t epoch = kHeldOutEpoch;
};

/// Hides tokens of a sequence with its special ids, see mask_tokens(); which ones is a pure
/// function of the options and the number of the sequence. returns: what is to be predicted, -1:
/// nothing
std::vector<int32_t> mask_sequence(const Tokenizer& tokenizer, std::vector<int32_t>& ids,
                                   int64_t sequence, const HidingOptions& options);

/// A text as ids with the special ones, and a class for it, or one a row (-1: none).
struct ClassExample {
  Encoding encoding = {};
  std::vector<int32_t> classes = {};
  std::string text = {}, labels = {};  ///< as they were given, with spaces between
};

struct ClassExampleOptions {
  std::vector<std::string> labels = {};  ///< of the classes, in their order
  bool is_words = false;                 ///< a class a word, which stands at its first id
  int64_t longest = 0;                   ///< ids beside the special ones; longer texts are cut
};

/// `cut` counts the texts that were cut at their end.
/// Errors: data, naming the place, for a text without ids or a label that is none of
/// options.labels.
std::vector<ClassExample> class_examples(const Tokenizer& tokenizer,
                                         std::span<const LabelledText> texts,
                                         const ClassExampleOptions& options, int64_t& cut);

/// Lays example number `s` behind the others of a batch.
void add_example(SequenceBatch& batch, std::span<const ClassExample> examples, int64_t s);

}  // namespace heddle::train
