// Tokens of a batch, as models take them, and the KV cache: what decoding keeps of those before.
#pragma once

#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "heddle/base/error.h"
#include "heddle/ops/dropout.h"
#include "heddle/ops/visibility.h"
#include "heddle/tensor/segments.h"
#include "heddle/tensor/tensor.h"

namespace heddle::nn {

class KvCache;
struct Memory;
struct TokenOrder;

/// Tokens of a batch of sequences, laid end to end.
struct TokenRows {
  static constexpr const char* kName = "tokens";

  std::span<const int32_t> ids = {};             ///< [rows]
  const Segments* segments = nullptr;            ///< one a sequence
  std::shared_ptr<const RowIds> rows = nullptr;  ///< for dropout; may be null if nothing is dropped
  /// [rows] position of each token; empty: its position in its sequence. For batches that were
  /// padded on the left or have holes, where Hugging Face counts the padding too.
  std::span<const int32_t> position_ids = {};
  std::span<const int32_t> types = {};  ///< [rows] token types; empty: all 0. For models with such
  /// Decoding: these tokens continue the sequences of a cache, which was extended by `segments` and
  /// gives `position_ids`. Null: whole sequences.
  KvCache* cache = nullptr;
  /// [sequences] With a cache: so many last tokens of each sequence are asked for, and a model
  /// gives the states of these alone, one sequence behind another; empty: all are.
  std::span<const int64_t> answers = {};
  /// What is remembered of each sequence's tokens before these, if the model has a memory: read,
  /// and then replaced by what the next pass is to see. Without layers: a sequence begins. Null: it
  /// begins, and nothing is remembered.
  Memory* memory = nullptr;
  /// [rows] not 0: a token that no token sees, itself neither, though it sees the others; empty:
  /// all are seen. Of whole sequences, in stacks of nn::SelfAttention: what Hugging Face makes of
  /// tokens that attention_mask hides.
  std::span<const uint8_t> unseen = {};
  /// Who sees whom, in place of what layers and `unseen` say; null: these say it. Of whole
  /// sequences, in stacks of nn::SelfAttention.
  std::shared_ptr<const Visibility> visibility = nullptr;
  const TokenOrder* order = nullptr;  ///< of models that take one; null: that of the text

  /// [rows] `position_ids`, or counted. Errors: shape if there are no segments, or positions or
  /// types of another number than the rows.
  std::vector<int32_t> positions() const;
  /// The rows of the `answers`.
  std::vector<int32_t> answering() const;
};

/// The states that are asked for. h: [rows, width] of all tokens
Tensor keep_answers(const Tensor& h, const TokenRows& tokens);

/// Errors: `kind`, opening with `what`, if an id is not in a vocabulary of so many tokens.
void check_ids(std::span<const int32_t> ids, int64_t vocab, const std::string& what,
               ErrorKind kind = ErrorKind::data);

/// Numbers of rows; those that are given back are taken again, so that a cache need not grow.
class RowPool {
 public:
  /// Adds n numbers that nobody holds to `rows`.
  void take(int64_t n, std::vector<int32_t>& rows);
  void give_back(std::span<const int32_t> rows) {
    free_.insert(free_.end(), rows.rbegin(), rows.rend());
  }
  /// Numbers that somebody holds.
  int64_t held() const { return size_ - static_cast<int64_t>(free_.size()); }

 private:
  std::vector<int32_t> free_;
  int32_t size_ = 0;
};

/// Rows that keep their place: keys and values, a row per token.
class RowCache {
 public:
  /// Copies row i to row places[i]. rows: [n, width], any strides; places: [n]
  void put(const Tensor& rows, std::span<const int32_t> places) {
    put({&rows, 1}, rows.dtype(), places);
  }
  /// The same of parts that stand side by side in a row of the cache, kept in `dtype`.
  /// parts: [n, width of each], of any dtypes
  void put(std::span<const Tensor> parts, DType dtype, std::span<const int32_t> places);
  /// So many are the most that will be needed: the cache grows no further ahead.
  void limit(int64_t rows) { limit_ = rows; }
  /// [capacity, width]
  const Tensor& rows() const { return rows_; }

 private:
  Tensor rows_;
  int64_t limit_ = std::numeric_limits<int64_t>::max();
};

/// What each sequence sees of a RowCache in one pass: segment i of both is sequence i.
struct CachedKeys {
  const Segments* queries = nullptr;           ///< the tokens that are new
  const Segments* keys = nullptr;              ///< all tokens, the new ones at the end
  std::span<const int32_t> key_rows = {};      ///< [keys->rows()] where the tokens lie in the cache
  std::span<const int32_t> new_rows = {};      ///< [queries->rows()] where the new ones go
  std::span<const int32_t> position_ids = {};  ///< [queries->rows()] positions of the new ones
};

/// All that decoding keeps of a batch of sequences: keys and values of each layer, and whose they
/// are.
class KvCache {
 public:
  KvCache(int64_t sequences, int64_t layers) : rows_of_(sequences), layers_(layers) {}

  int64_t sequences() const { return static_cast<int64_t>(rows_of_.size()); }
  /// Rows of all sequences, shared ones once.
  int64_t rows() const { return pool_.held(); }
  /// Gives the tokens of the next pass their rows: segment i of `tokens` continues sequence i. To
  /// be called once before each pass.
  void extend(const Segments& tokens);
  /// [rows of the pass] positions of its tokens in their sequences.
  std::span<const int32_t> position_ids() const { return position_ids_; }
  CachedKeys keys() const { return {&tokens_, &keys_, key_rows_, new_rows_, position_ids_}; }
  RowCache& layer(int64_t i) { return layers_[i]; }
  void limit(int64_t rows) {
    for (RowCache& layer : layers_) layer.limit(rows);
  }
  /// Sequence i becomes what sequence numbers[i] was; a number may come several times (a beam that
  /// forks: its tokens are shared, not copied) or not at all (that sequence is forgotten).
  void select(std::span<const int64_t> numbers);
  /// Forgets the last counts[i] tokens of sequence i, which has as many.
  void drop_last(std::span<const int64_t> counts);
  /// Adds n sequences without tokens, the last ones.
  void add(int64_t n) { rows_of_.resize(rows_of_.size() + static_cast<size_t>(n)); }

 private:
  void release(std::span<const int32_t> rows);  // each held by one sequence fewer

  std::vector<std::vector<int32_t>> rows_of_;  // of each sequence: rows of its tokens, oldest first
  std::vector<int32_t> holders_;               // of each row: sequences that have it
  std::vector<RowCache> layers_;
  RowPool pool_;
  Segments tokens_, keys_;
  std::vector<int32_t> position_ids_, key_rows_, new_rows_;
};

}  // namespace heddle::nn
