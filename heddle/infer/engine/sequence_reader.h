// What a model has read of sequences that grow, and what it says comes next.
#pragma once

#include <memory>
#include <span>

#include "heddle/models/token_model.h"

namespace heddle {

/// A batch of sequences, read from their beginnings and then as tokens are added. What a sequence
/// gets depends on no other.
class SequenceReader {
 public:
  virtual ~SequenceReader() = default;
  /// Sequences without tokens, behind the others: one for each source, which is what an
  /// encoder-decoder translates, with its end, and empty of other models.
  virtual void add(std::span<const std::span<const int32_t>> sources, const nn::Run& run) = 0;
  /// Reads tokens: segment i continues sequence i and is not empty. returns: [sequences, width] for
  /// the logits of the tokens that come next.
  virtual Tensor read(std::span<const int32_t> ids, const Segments& tokens, const nn::Run& run) = 0;
  /// Sequence i becomes what sequence sequences[i] was. What no sequence has any more is forgotten.
  virtual void select(std::span<const int64_t> sequences) = 0;
  /// So many rows are the most that will be kept.
  virtual void limit_rows(int64_t rows) = 0;
  /// Rows that are kept of all sequences: keys and values of tokens and sources, or what the family
  /// has in their place.
  virtual int64_t rows() const = 0;
  /// The greatest rows() of n sequences that fork behind `shared` tokens, then read `own` each.
  virtual int64_t rows_of(int64_t shared, int64_t own, int64_t n) const { return shared + own * n; }
};

/// Whether the model predicts the next token, in the order of the text (LanguageModel) or, as
/// XLNet, in any.
bool predicts_next_token(const Model& model);

/// The reader of such a model or of an encoder-decoder: over cached keys and values, or, of an
/// XLNet, as Hugging Face's generate() has it: behind the tokens stands one that none of them sees,
/// and that is predicted. With memory (memory_length() above 0) a pass reads the last token again
/// beside the new one, and remembers the states of those before as they were computed then.
std::unique_ptr<SequenceReader> make_sequence_reader(const TokenModel& model);

}  // namespace heddle
