// Tokens that are predicted from the others of their sequence: hidden ones for masked language
// modelling (Devlin et al. 2019, section 3.1), and in some order for permutation language modelling
// (Yang et al. 2019, "XLNet", sections 2.2 and 2.3).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "heddle/base/rng.h"

namespace heddle {

struct MaskingOptions {
  double share = 0.15;                           ///< of the tokens that are predicted
  int32_t mask_id = 0;                           ///< stands for 80 % of them
  int64_t vocab_size = 0;                        ///< 10 % become any of so many tokens, 10 % stay
  std::function<bool(int32_t)> is_special = {};  ///< tokens that are never chosen
};

/// Chooses tokens of a sequence, each with the same probability and at least one if there is any,
/// changes them in `ids` and returns what is to be predicted: -1 where nothing is. A pure function
/// of `key`.
std::vector<int32_t> mask_tokens(std::vector<int32_t>& ids, const MaskingOptions& options,
                                 RngKey key);

struct PermutationOptions {
  double share = 1.0 / 6;                        ///< of the tokens that are predicted
  int64_t max_span = 5;                          ///< of tokens that are predicted side by side
  std::function<bool(int32_t)> is_special = {};  ///< tokens that are never predicted
};

/// How the tokens of a sequence become known.
struct Permutation {
  std::vector<int32_t> targets;  ///< positions of the predicted tokens, ascending
  /// [tokens] 0: known from the beginning; k: the k-th that is predicted, from those known before.
  std::vector<int32_t> steps;
};

/// Draws spans of 1 to max_span tokens, each somewhere in span / share tokens of its own, and an
/// order of all their tokens, each order with the same probability: the last tokens of a random
/// order of the sequence, since those before them are given. At least one token is predicted, if
/// any may be. A pure function of `key`. Source of the spans: transformers'
/// DataCollatorForPermutationLanguageModeling; it hides predicted tokens from those later in the
/// order too, the paper and this do not.
Permutation draw_permutation(std::span<const int32_t> ids, const PermutationOptions& options,
                             RngKey key);

}  // namespace heddle
