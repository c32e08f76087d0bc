// Tokens of a batch, as models take them: their order, and what is remembered before them.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "heddle/base/error.h"
#include "heddle/nn/kv_cache.h"
#include "heddle/ops/dropout.h"
#include "heddle/tensor/segments.h"
#include "heddle/tensor/tensor.h"

namespace heddle::nn {

/// An order in which the tokens of each sequence become known, or a mask. Tokens are rows of the
/// pass. Source: Yang et al. 2019, "XLNet", sections 2.2 and 2.3.
struct TokenOrder {
  /// [tokens] A token sees those of the same step and of earlier ones; its prediction sees the
  /// earlier ones only. Empty: all see all.
  std::vector<int32_t> steps = {};
  /// Instead of steps, any rule: not 0 where token i does not see token j, n * n values of each
  /// sequence of n tokens, row by row; a token sees itself, its prediction does not if the mask
  /// says so. Empty: no rule.
  std::vector<uint8_t> hidden = {};
  Segments targets = {};                    ///< predictions of each sequence; none: one stream
  std::vector<int32_t> target_tokens = {};  ///< [targets] the token predicted, or -1: nothing is

  /// Errors: shape if it does not fit the tokens' segments.
  void check(const Segments& tokens) const;
};

/// States of the tokens before those of a pass, which attention sees beside them and no gradient
/// enters. Source: Dai et al. 2019, "Transformer-XL", section 3.2.
struct Memory {
  Segments segments;           ///< tokens kept of each sequence
  std::vector<Tensor> layers;  ///< [rows, width] what entered layer i

  /// What a pass over `tokens` sees before them: `given`, or n zero rows each if it is null or
  /// empty. Errors: shape if `given` is of other sequences or layers.
  static Memory before(const Memory* given, const Segments& tokens, int64_t n, int64_t layers,
                       int64_t width, DType dtype);
  /// What is kept of a pass for the next.
  struct Keep {
    int64_t most = 0;   ///< the last so many rows of a sequence, older ones counted
    int64_t reuse = 0;  ///< of the new ones only the first so many; 0: all
  };
  /// What the next pass is to see: of each sequence what was kept, then x (what entered layer i for
  /// `tokens`). Errors: shape if sizes do not fit.
  Memory next(const std::vector<Tensor>& x, const Segments& tokens, const Keep& keep) const;
};

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
