// Where tokens and what is remembered before them stand, and who sees whom, in relative attention.
#pragma once

#include "heddle/nn/token_rows.h"
#include "heddle/ops/relative_attention.h"

namespace heddle::nn {

// --- what is remembered, and in which order tokens become known ----------------------------------

/// States of the tokens before those of a pass, which attention sees beside them and no gradient
/// enters. Source: Dai et al. 2019, "Transformer-XL", section 3.2.
struct Memory {
  Segments segments;           ///< tokens kept of each sequence
  std::vector<Tensor> layers;  ///< [rows, width] what entered layer i, of any dtype

  /// What a pass over `tokens` sees before them: `given`, or n zero rows each if it is null or
  /// empty; in this dtype. Errors: shape if `given` is of other sequences or layers.
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

// --- where they stand ----------------------------------------------------------------------------

/// Tokens (the queries) behind the memory of their sequences: the keys of a sequence are the rows
/// of its memory, at positions -n .. -1 and of type 0, then its tokens. Until a rule is given all
/// see all.
RelativeRows rows_behind(const Segments& memory, const TokenRows& tokens);

/// The same of new tokens that continue the sequences of a cache: the keys of a sequence are those
/// at the `most` positions before the new tokens (0: all), then these. `cache_rows` receives for
/// each key its row in the cache, or -1 for a position before the first token.
RelativeRows rows_of_cache(const KvCache& cache, int64_t most, std::vector<int32_t>& cache_rows);

/// The predictions of an order over the same keys: each stands where the token is that it predicts,
/// one of no token at 0.
RelativeRows rows_of_targets(const RelativeRows& tokens, const TokenOrder& order);

/// Lets the sequences from `first` on run backwards: their distances change signs.
void run_backwards(RelativeRows& rows, int64_t first);

/// The greatest and the least distance of a query and a key of its segment; 0 if there is none.
int32_t farthest(const RelativeRows& rows);
int32_t nearest(const RelativeRows& rows);

// --- who sees whom -------------------------------------------------------------------------------

/// The rule of a causal stack with memory: a query sees what is at most window - 1 positions back
/// (0: all), and nothing after itself. Source: Dai et al. 2019, section 3.2.
void see_back(RelativeRows& rows, int64_t window);

/// How XLNet's tokens see each other; what is remembered is seen by all unless a window hides it.
struct OrderRule {
  const TokenOrder* order = nullptr;  ///< null: no order but the text's
  bool is_of_targets = false;         ///< the queries are order->targets, not the tokens
  bool is_causal = false;             ///< a token sees nothing after it in the text
  bool is_windowed = false;  ///< causal: nor more tokens before it than its sequence's memory has
};
/// Makes it the rule of rows whose keys are those of rows_behind(memory, tokens).
/// Errors: data if the rule is causal and the order has steps.
/// Source: Yang et al. 2019, "XLNet", sections 2.2 and 2.3.
void see_in_order(RelativeRows& rows, const Segments& tokens, const OrderRule& rule);

}  // namespace heddle::nn
