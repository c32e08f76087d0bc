// Rules change the logits, or ban tokens, before tokens are chosen.
#include "heddle/infer/decoding/next_tokens.h"

namespace heddle {
namespace {

std::vector<int32_t> all_tokens(const TokensSoFar& row) {
  std::vector<int32_t> ids(row.before.begin(), row.before.end());
  ids.insert(ids.end(), row.tokens.begin(), row.tokens.end());
  return ids;
}

// Applies rules to rows of logits, which change in place.
class Rules {
 public:
  Rules(const NextTokensOptions& options, const Rows& logits)
      : options_(options), logits_(logits) {}

  /// returns: what must not come in each row
  std::vector<std::vector<int32_t>> apply(std::span<const TokensSoFar> rows) const {
    std::vector<std::vector<int32_t>> banned(rows.size());
    const TokenRules& rules = options_.rules;
    for (size_t r = 0; r < rows.size(); ++r) {
      const std::vector<int32_t> ids = all_tokens(rows[r]);
      const auto row = static_cast<int64_t>(r);
      if (options_.penalises_log_p) make_log_p(row);
      if (rules.repetition_penalty != 1) {
        penalise_repeats(values(row), ids, rules.repetition_penalty);
      }
      if (rules.no_repeat_ngram > 0) ban_repeats(ids, rules.no_repeat_ngram, banned[r]);
      for (const auto& ngram : rules.banned_ngrams) ban_last_of(ngram, ids, banned[r]);
      if (static_cast<int64_t>(rows[r].tokens.size()) < rules.min_length ||
          static_cast<int64_t>(ids.size()) < rules.min_total_length) {
        banned[r].insert(banned[r].end(), options_.eos.begin(), options_.eos.end());
      }
    }
    return banned;
  }

  /// Scores of the tokens as the rules have left them, where they are log p.
  void score(std::vector<NextToken>& tokens) const {
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (tokens[i].id < 0) continue;
      const auto row = static_cast<int64_t>(i) / options_.count;
      tokens[i].log_p = values(row)[static_cast<size_t>(tokens[i].id)];
    }
  }

 private:
  std::span<float> values(int64_t row) const {
    return {logits_.row<float>(row), static_cast<size_t>(logits_.width)};
  }

  void make_log_p(int64_t row) const {
    const LogitScale scale = scale_of_row(logits_, row);
    for (float& x : values(row)) x = scale.log_p(x);
  }

  const NextTokensOptions& options_;
  Rows logits_;
};

}  // namespace

std::vector<NextToken> next_tokens(const nn::OutputProjection& output, const Tensor& h,
                                   const nn::Run& run, std::span<const TokensSoFar> rows,
                                   const NextTokensOptions& o) {
  std::vector<int32_t> forced;
  std::vector<double> draws;
  for (const TokensSoFar& row : rows) {
    forced.push_back(row.forced);
    draws.push_back(row.draw);
  }
  BestTokensOptions wanted = {
      .count = o.count, .suppressed = o.suppressed, .forced = forced, .scores = o.scores};
  if (!o.rules.any() && !o.sampling) return best_tokens(output, h, run, wanted);
  const Tensor logits = output(h, run);  // whole: rules change them in place
  const Rules rules(o, logits.rows());
  std::vector<std::vector<int32_t>> banned;
  if (o.rules.any()) banned = rules.apply(rows);
  wanted.banned = banned;
  std::vector<NextToken> next =
      o.sampling ? sample_tokens(logits, draws, {*o.sampling, o.suppressed, banned, forced})
                 : best_tokens(logits, wanted);
  const auto count = static_cast<size_t>(o.count);
  for (size_t r = 0; r < rows.size(); ++r) {
    if (next[r * count].id >= 0) continue;
    BestTokensOptions anything = {.suppressed = o.suppressed};
    if (!o.eos.empty()) anything.forced = o.eos.first(1);
    next[r * count] = best_tokens(logits.slice(0, static_cast<int64_t>(r), 1), anything)[0];
    check(next[r * count].id >= 0, ErrorKind::usage, "all tokens of the vocabulary are suppressed");
  }
  if (o.penalises_log_p && o.rules.any()) rules.score(next);
  return next;
}

}  // namespace heddle
