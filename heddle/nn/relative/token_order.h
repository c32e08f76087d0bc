// Which tokens see which, and which are predicted unseen: what XLNet is told beside its tokens.
#pragma once

#include <vector>

#include "heddle/tensor/segments.h"

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

}  // namespace heddle::nn
