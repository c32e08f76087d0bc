// Tokens that are hidden for masked language modelling: Devlin et al. 2019, section 3.1.
#pragma once

#include <cstdint>
#include <functional>
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

}  // namespace heddle
