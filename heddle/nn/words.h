// Words of a batch, and what decoding keeps of those before them.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "heddle/nn/memory.h"
#include "heddle/nn/word_order.h"
#include "heddle/ops/dropout.h"
#include "heddle/tensor/segments.h"

namespace heddle::nn {

/// Numbers of rows; those that are given back are taken again, so that a cache need not grow.
class RowPool {
 public:
  /// Adds n numbers that nobody holds to `rows`.
  void take(int64_t n, std::vector<int32_t>& rows);
  void give_back(std::span<const int32_t> rows) {
    free_.insert(free_.end(), rows.rbegin(), rows.rend());
  }

 private:
  std::vector<int32_t> free_;
  int32_t size_ = 0;
};

/// Rows that keep their place: keys and values, a row a word.
class RowCache {
 public:
  /// Copies rows to their places. rows: [n, width], any strides; places: [n]
  void put(const Tensor& rows, std::span<const int32_t> places);
  /// [capacity, width]
  const Tensor& rows() const { return rows_; }

 private:
  Tensor rows_;
};

/// What each sequence sees of a RowCache in one pass: segment i of both is sequence i.
struct CachedKeys {
  const Segments* queries = nullptr;       ///< the words that are new
  const Segments* keys = nullptr;          ///< all words, the new ones at the end
  std::span<const int32_t> key_rows = {};  ///< [keys->rows()] where the words lie in the cache
  std::span<const int32_t> new_rows = {};  ///< [queries->rows()] where the new ones go
  std::span<const int32_t> places = {};    ///< [queries->rows()] positions of the new ones
};

/// All that decoding keeps of a batch of sequences: keys and values of each layer, and whose they
/// are.
class WordCache {
 public:
  WordCache(int64_t sequences, int64_t layers) : rows_of_(sequences), layers_(layers) {}

  int64_t sequences() const { return static_cast<int64_t>(rows_of_.size()); }
  /// Words of a sequence so far.
  int64_t length(int64_t sequence) const { return static_cast<int64_t>(rows_of_[sequence].size()); }
  /// Gives the words of the next pass their place: segment i of `words` continues sequence i. To be
  /// called once before each pass.
  void extend(const Segments& words);
  /// [rows of the pass] positions of its words in their sequences.
  std::span<const int32_t> places() const { return places_; }
  CachedKeys keys() const { return {&words_, &keys_, key_rows_, new_rows_, places_}; }
  RowCache& layer(int64_t i) { return layers_[i]; }
  /// Sequence i becomes what sequence numbers[i] was; a number may come several times (a beam that
  /// forks: its words are shared, not copied) or not at all (that sequence is forgotten).
  void select(std::span<const int64_t> numbers);
  /// Adds n sequences without words, the last ones.
  void add(int64_t n) { rows_of_.resize(rows_of_.size() + static_cast<size_t>(n)); }

 private:
  std::vector<std::vector<int32_t>> rows_of_;  // of each sequence: rows of its words, oldest first
  std::vector<int32_t> holders_;               // of each row: sequences that have it
  std::vector<RowCache> layers_;
  RowPool pool_;
  Segments words_, keys_;
  std::vector<int32_t> places_, key_rows_, new_rows_;
};

/// Words of a batch of sequences, laid end to end.
struct WordRows {
  std::span<const int32_t> ids = {};             ///< [rows]
  const Segments* segments = nullptr;            ///< one a sequence
  std::shared_ptr<const RowIds> rows = nullptr;  ///< for dropout; may be null if nothing is dropped
  /// [rows] position of each word; empty: its place in its sequence. For batches that were padded
  /// on the left or have holes, where Hugging Face counts the padding too.
  std::span<const int32_t> places = {};
  std::span<const int32_t> types = {};  ///< [rows] token types; empty: all 0. For models with such
  /// Decoding: these words continue the sequences of a cache, which was extended by `segments` and
  /// gives `places`. Null: whole sequences.
  WordCache* cache = nullptr;
  /// What is remembered of each sequence's words before these, if the model has a memory: read, and
  /// then replaced by what the next pass is to see. Without layers: a sequence begins. Null: it
  /// begins, and nothing is remembered.
  Memory* memory = nullptr;
  /// [rows] not 0: a word that no word sees, itself neither, though it sees the others; empty: all
  /// are seen. Of whole sequences, in stacks of nn::SelfAttention: what Hugging Face makes of words
  /// that attention_mask hides.
  std::span<const uint8_t> unseen = {};
  const WordOrder* order = nullptr;  ///< of models that take one; null: that of the text

  /// positions: `places`, or counted.
  std::vector<int32_t> positions() const;
};

}  // namespace heddle::nn
