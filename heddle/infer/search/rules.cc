// Rules over the logits of a row: penalties, and what is banned by the tokens that came.
#include "heddle/infer/search/rules.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace heddle {
namespace {

// Adds to `banned` each id that would complete an n-gram which `ids` holds already.
// Source: Paulus et al. 2017, section 2.5.
void ban_repeats(std::span<const int32_t> ids, int64_t n, std::vector<int32_t>& banned) {
  const auto before = static_cast<size_t>(n - 1);  // tokens that the next one follows
  if (ids.size() < before) return;
  const std::span<const int32_t> last = ids.last(before);
  for (size_t i = before; i < ids.size(); ++i) {
    if (std::ranges::equal(last, ids.subspan(i - before, before))) banned.push_back(ids[i]);
  }
}

// Adds to `banned` the last token of an n-gram where `ids` end in the tokens before it.
void ban_last_of(std::span<const int32_t> ngram, std::span<const int32_t> ids,
                 std::vector<int32_t>& banned) {
  const std::span<const int32_t> before = ngram.first(ngram.size() - 1);
  if (ids.size() < before.size()) return;
  if (std::ranges::equal(before, ids.last(before.size()))) banned.push_back(ngram.back());
}

// Divides the logits of the tokens so far by the penalty where they are positive, and multiplies
// them by it where they are negative, once a token however often it came.
// Source: Keskar et al. 2019, section 4.1, with the signs of Hugging Face.
void penalise_repeats(std::span<float> logits, std::span<const int32_t> ids, double penalty) {
  const auto factor = static_cast<float>(penalty);
  std::vector<int32_t> once(ids.begin(), ids.end());
  std::sort(once.begin(), once.end());
  once.erase(std::unique(once.begin(), once.end()), once.end());
  for (const int32_t id : once) {
    float& x = logits[static_cast<size_t>(id)];
    x = x > 0 ? x / factor : x * factor;
  }
}

}  // namespace

bool has_rules(const NextTokensOptions& o) {
  const SearchConfig& s = *o.search;
  return s.no_repeat_ngram.value_or(0) > 0 || s.repetition_penalty.value_or(1) != 1 ||
         s.min_new_tokens.value_or(0) > 0 || s.min_length.value_or(0) > 0 ||
         !o.banned_ngrams.empty() || !s.banned_beginnings.empty();
}

std::vector<int32_t> apply_rules(const TokensSoFar& row, const Rows& logits, int64_t r) {
  const NextTokensOptions& o = *row.options;
  const SearchConfig& search = *o.search;
  std::vector<int32_t> banned;
  if (!has_rules(o)) return banned;
  const std::span<float> values(logits.row<float>(r), static_cast<size_t>(logits.width));
  std::vector<int32_t> ids(row.before.begin(), row.before.end());
  ids.insert(ids.end(), row.tokens.begin(), row.tokens.end());
  if (o.penalises_log_p) {
    const LogitScale scale = scale_of_row(logits, r);
    for (float& x : values) x = scale.log_p(x);
  }
  const double penalty = search.repetition_penalty.value_or(1);
  if (penalty != 1) penalise_repeats(values, ids, penalty);
  const int64_t n = search.no_repeat_ngram.value_or(0);
  if (n > 0) ban_repeats(ids, n, banned);
  for (const auto& ngram : o.banned_ngrams) ban_last_of(ngram, ids, banned);
  for (const auto& beginning : search.banned_beginnings) {
    if (row.tokens.size() + 1 == beginning.size()) ban_last_of(beginning, row.tokens, banned);
  }
  const bool is_early = search.min_new_tokens ? std::ssize(row.tokens) < *search.min_new_tokens
                                              : std::ssize(ids) < search.min_length.value_or(0);
  if (is_early) {
    banned.insert(banned.end(), o.ends.begin(), o.ends.end());
  }
  return banned;
}

void renormalize(const TokensSoFar& row, std::span<const int32_t> banned, const Rows& logits,
                 int64_t r) {
  if (!row.options->search->renormalizes() || row.forced >= 0) return;
  const std::span<float> values(logits.row<float>(r), static_cast<size_t>(logits.width));
  std::vector<float> left(values.begin(), values.end());
  drop({.suppressed = row.options->suppressed, .banned = banned, .allowed = row.allowed}, left, 0);
  if (std::ranges::none_of(left, [](float x) { return std::isfinite(x); })) return;
  std::ranges::copy(left, values.begin());
  const LogitScale scale = scale_of_row(logits, r);
  for (float& x : values) x = scale.log_p(x);
}

}  // namespace heddle
