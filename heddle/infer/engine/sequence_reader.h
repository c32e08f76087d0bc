// What a model has read of sequences that grow, and what it says comes next.
#pragma once

#include <span>

#include "heddle/base/error.h"
#include "heddle/models/token_model.h"

namespace heddle {

/// A batch of sequences, read from their beginnings and then as tokens are added. What a sequence
/// gets depends on no other.
class SequenceReader {
 public:
  /// What an encoder-decoder reads before it writes: tokens with their end, or what encode() gave
  /// of a source of another kind, [rows, width]. Nothing of other models.
  struct Source {
    std::span<const int32_t> ids = {};
    Tensor memory = {};
  };
  using Sources = std::span<const Source>;

  virtual ~SequenceReader() = default;
  /// Sequences without tokens, behind the others: one for each source.
  virtual void add(Sources sources, const nn::Run& run) = 0;
  /// Reads tokens: segment i continues sequence i and is not empty. returns: [rows, width] for the
  /// logits of what comes behind the last answers[i] tokens of each sequence, one behind another.
  virtual Tensor read(std::span<const int32_t> ids, const Segments& tokens,
                      std::span<const int64_t> answers, const nn::Run& run) = 0;
  /// Whether there may be several answers of a sequence, each with the bits that it has alone, and
  /// tokens be dropped: what is drafted can be checked.
  virtual bool checks_drafts() const = 0;
  /// Forgets the last counts[i] tokens of sequence i.
  virtual void drop_last(std::span<const int64_t> counts) = 0;
  /// Sequence i becomes what sequence sequences[i] was. What no sequence has any more is forgotten.
  virtual void select(std::span<const int64_t> sequences) = 0;
  /// Keeps what sequence i has read, so many tokens, as the last of those kept, whatever becomes of
  /// the sequence. Of readers that say can_keep() only, as the two below.
  virtual void keep(int64_t, int64_t) { fail_to_keep(); }
  /// Forgets the i-th of those kept; those behind it move up.
  virtual void forget_kept(int64_t) { fail_to_keep(); }
  /// Adds a sequence, behind the others, with the first tokens of the i-th of those kept.
  virtual void add_from_kept(int64_t, int64_t) { fail_to_keep(); }
  virtual bool can_keep() const { return false; }
  /// So many rows are the most that will be kept.
  virtual void limit_rows(int64_t rows) = 0;
  /// Rows that are kept of all sequences: keys and values of tokens and sources, or what the family
  /// has in their place.
  virtual int64_t rows() const = 0;
  /// The greatest rows() of n sequences that fork behind `shared` tokens, then read `own` each.
  virtual int64_t rows_of(int64_t shared, int64_t own, int64_t n) const { return shared + own * n; }

 private:
  [[noreturn]] static void fail_to_keep() {
    fail(ErrorKind::internal, "this reader keeps no beginnings");
  }
};

}  // namespace heddle
