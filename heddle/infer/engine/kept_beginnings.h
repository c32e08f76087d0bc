// Tokens that were read before, and the rows of the KV cache that they left.
#pragma once

#include <span>
#include <vector>

#include "heddle/infer/engine/sequence_reader.h"

namespace heddle {

/// What sequences began with, kept for those that begin alike: while they live their rows are
/// shared, and behind them they stay until room is needed, the longest unused ones going first.
class KeptBeginnings {
 public:
  /// rows: that all of them may have together
  KeptBeginnings(SequenceReader& reader, int64_t rows) : reader_(reader), most_(rows) {}

  struct Match {
    size_t number = 0;
    int64_t tokens = 0;  ///< that are the same; 0: too few to be worth it
  };
  /// The one that has the most of the first tokens of a prompt, but never the last: that must be
  /// read to go on.
  Match find(std::span<const int32_t> prompt) const;
  /// Adds a sequence to the reader that begins so.
  void begin(const Match& match);
  /// Keeps what sequence i of the reader has read: these tokens.
  void keep(int64_t sequence, std::vector<int32_t> tokens);
  /// Forgets so many that all have no more than so many rows.
  void shrink_to(int64_t rows);
  int64_t rows() const { return rows_; }  ///< at most: what is shared counts again

 private:
  static constexpr int64_t kLeast = 8;     // tokens
  static constexpr size_t kMostKept = 64;  // each is compared with every prompt
  struct Kept {
    std::vector<int32_t> tokens;
    int64_t used;
  };
  void forget(size_t i);
  void forget_oldest();

  SequenceReader& reader_;
  const int64_t most_;
  std::vector<Kept> kept_;  // as the reader has them
  int64_t rows_ = 0, time_ = 0;
};

}  // namespace heddle
