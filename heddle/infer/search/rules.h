// What may come next by the rules of a search: how often a token or an n-gram may come, and how
// early the end.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heddle/infer/search/beam.h"

namespace heddle {

/// Whether there are rules that look at what came, or that change logits.
bool has_rules(const NextTokensOptions& o);

/// Applies its rules to row r of logits, which change in place: to log p where the penalty is one
/// of log p. returns: what must not come
std::vector<int32_t> apply_rules(const TokensSoFar& row, const Rows& logits, int64_t r);

/// Where its search says so (SearchConfig::renormalizes()), and no token is forced: makes row r of
/// logits log p among the tokens that may come, and that of others -inf. A row of which none may
/// come stays as it is. banned: what apply_rules() gave
void renormalize(const TokensSoFar& row, std::span<const int32_t> banned, const Rows& logits,
                 int64_t r);

}  // namespace heddle
