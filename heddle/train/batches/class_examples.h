// Labelled texts as a model takes them, with the classes of their sequences or of their words.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "heddle/data/labelled.h"
#include "heddle/text/tokenizer.h"
#include "heddle/train/batches/sequence_batch.h"

namespace heddle::train {

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
