// Rules change the logits, or ban tokens, before tokens are chosen.
#include "heddle/infer/search/next_tokens.h"

#include <algorithm>

namespace heddle {
namespace {

std::vector<int32_t> all_tokens(const TokensSoFar& row) {
  std::vector<int32_t> ids(row.before.begin(), row.before.end());
  ids.insert(ids.end(), row.tokens.begin(), row.tokens.end());
  return ids;
}

// Applies its rules to a row of logits, which change in place: to log p where the penalty is one of
// log p. returns: what must not come
std::vector<int32_t> apply_rules(const TokensSoFar& row, const Rows& logits, int64_t r) {
  const NextTokensOptions& o = *row.options;
  const TokenRules& rules = o.rules;
  std::vector<int32_t> banned;
  if (!rules.any()) return banned;
  const std::span<float> values(logits.row<float>(r), static_cast<size_t>(logits.width));
  const std::vector<int32_t> ids = all_tokens(row);
  if (o.penalises_log_p) {
    const LogitScale scale = scale_of_row(logits, r);
    for (float& x : values) x = scale.log_p(x);
  }
  if (rules.repetition_penalty != 1) penalise_repeats(values, ids, rules.repetition_penalty);
  if (rules.no_repeat_ngram > 0) ban_repeats(ids, rules.no_repeat_ngram, banned);
  for (const auto& ngram : rules.banned_ngrams) ban_last_of(ngram, ids, banned);
  if (static_cast<int64_t>(row.tokens.size()) < rules.min_length ||
      static_cast<int64_t>(ids.size()) < rules.min_total_length) {
    banned.insert(banned.end(), o.eos.begin(), o.eos.end());
  }
  return banned;
}

// The token where the rules leave none.
NextToken without_rules(const TokensSoFar& row, const Tensor& logits, int64_t r) {
  const NextTokensOptions& o = *row.options;
  const BestTokensOptions anything = {.suppressed = o.suppressed,
                                      .forced = o.eos.first(o.eos.empty() ? 0 : 1)};
  const NextToken token = best_tokens(logits.slice(0, r, 1), anything)[0];
  check(token.id >= 0, ErrorKind::usage, "all tokens of the vocabulary are suppressed");
  return token;
}

bool needs_logits(const TokensSoFar& row) {
  return row.options->rules.any() || row.options->sampling.has_value();
}

using Tokens = std::vector<NextToken>;

// The tokens of all rows: `first` are those of the rows for which is_first holds.
template <class IsFirst>
Tokens merge(std::span<const TokensSoFar> rows, const Tokens& first, const Tokens& second,
             const IsFirst& is_first) {
  if (first.empty()) return second;
  if (second.empty()) return first;
  Tokens all;
  all.reserve(first.size() + second.size());
  auto a = first.begin(), b = second.begin();
  for (const TokensSoFar& row : rows) {
    auto& from = is_first(row) ? a : b;
    all.insert(all.end(), from, from + row.options->count);
    from += row.options->count;
  }
  return all;
}

// Tokens of rows that need their logits: [rows, vocab], which change in place.
Tokens choose(const Tensor& logits, std::span<const TokensSoFar> rows) {
  std::vector<std::vector<int32_t>> banned;
  std::vector<SampleRow> draws;
  std::vector<BestTokensRow> searched;
  for (size_t r = 0; r < rows.size(); ++r) {
    banned.push_back(apply_rules(rows[r], logits.rows(), static_cast<int64_t>(r)));
  }
  for (size_t r = 0; r < rows.size(); ++r) {
    const TokensSoFar& row = rows[r];
    const NextTokensOptions& o = *row.options;
    searched.push_back({o.sampling ? 0 : o.count, o.suppressed, banned[r], row.forced, o.scores});
    draws.push_back(
        {o.sampling ? &*o.sampling : nullptr, row.draw, o.suppressed, banned[r], row.forced});
  }
  const auto is_sampled = [](const TokensSoFar& row) { return row.options->sampling.has_value(); };
  const bool all_sampled = std::all_of(rows.begin(), rows.end(), is_sampled);
  Tokens next = merge(rows, sample_tokens(logits, draws),
                      all_sampled ? Tokens() : best_tokens_of_rows(logits, searched), is_sampled);
  size_t at = 0;
  for (size_t r = 0; r < rows.size(); ++r) {
    const NextTokensOptions& o = *rows[r].options;
    const auto row = static_cast<int64_t>(r);
    if (next[at].id < 0) next[at] = without_rules(rows[r], logits, row);
    for (int64_t i = 0; i < o.count; ++i, ++at) {  // scores as the rules have left them
      if (!o.penalises_log_p || !o.rules.any() || next[at].id < 0) continue;
      next[at].log_p = logits.rows().row<float>(row)[next[at].id];
    }
  }
  return next;
}

}  // namespace

std::vector<NextToken> next_tokens(const nn::OutputProjection& output, const Tensor& h,
                                   const nn::Run& run, std::span<const TokensSoFar> rows) {
  std::vector<BestTokensRow> wanted;
  std::vector<int64_t> numbers;
  std::vector<TokensSoFar> chosen;  // the rows of these numbers
  for (size_t r = 0; r < rows.size(); ++r) {
    const bool is_whole = needs_logits(rows[r]);
    const NextTokensOptions& o = *rows[r].options;
    wanted.push_back({is_whole ? 0 : o.count, o.suppressed, {}, rows[r].forced, o.scores});
    if (!is_whole) continue;
    numbers.push_back(static_cast<int64_t>(r));
    chosen.push_back(rows[r]);
  }
  if (chosen.size() == rows.size()) return choose(output(h, run), rows);
  KeptLogits kept{.rows = numbers};
  const Tokens likeliest =
      best_tokens_of_rows(output, h, run, wanted, numbers.empty() ? nullptr : &kept);
  if (chosen.empty()) return likeliest;
  return merge(rows, choose(kept.logits, chosen), likeliest, needs_logits);
}

}  // namespace heddle
