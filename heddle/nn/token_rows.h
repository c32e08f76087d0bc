// Tokens of a batch, as models take them.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "heddle/base/error.h"
#include "heddle/nn/kv_cache.h"
#include "heddle/nn/relative/memory.h"
#include "heddle/nn/relative/token_order.h"
#include "heddle/ops/dropout.h"
#include "heddle/tensor/segments.h"

namespace heddle::nn {

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
  /// What is remembered of each sequence's tokens before these, if the model has a memory: read,
  /// and then replaced by what the next pass is to see. Without layers: a sequence begins. Null: it
  /// begins, and nothing is remembered.
  Memory* memory = nullptr;
  /// [rows] not 0: a token that no token sees, itself neither, though it sees the others; empty:
  /// all are seen. Of whole sequences, in stacks of nn::SelfAttention: what Hugging Face makes of
  /// tokens that attention_mask hides.
  std::span<const uint8_t> unseen = {};
  const TokenOrder* order = nullptr;  ///< of models that take one; null: that of the text

  /// [rows] `position_ids`, or counted.
  std::vector<int32_t> positions() const;
};

/// Errors: `kind`, opening with `what`, if an id is not in a vocabulary of so many tokens.
void check_ids(std::span<const int32_t> ids, int64_t vocab, const std::string& what,
               ErrorKind kind = ErrorKind::data);

}  // namespace heddle::nn
