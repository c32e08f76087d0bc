// Rules change the logits, or ban words, before words are chosen.
#include "heddle/infer/next_words.h"

namespace heddle {
namespace {

std::vector<int32_t> all_words(const WordsSoFar& row) {
  std::vector<int32_t> ids(row.before.begin(), row.before.end());
  ids.insert(ids.end(), row.words.begin(), row.words.end());
  return ids;
}

// Applies rules to rows of logits, which change in place.
class Rules {
 public:
  Rules(const NextWordsOptions& options, const Rows& logits) : options_(options), logits_(logits) {}

  /// returns: what must not come in each row
  std::vector<std::vector<int32_t>> apply(std::span<const WordsSoFar> rows) const {
    std::vector<std::vector<int32_t>> banned(rows.size());
    const WordRules& rules = options_.rules;
    for (size_t r = 0; r < rows.size(); ++r) {
      const std::vector<int32_t> ids = all_words(rows[r]);
      const auto row = static_cast<int64_t>(r);
      if (options_.penalises_log_p) make_log_p(row);
      if (rules.repetition_penalty != 1) {
        penalise_repeats(values(row), ids, rules.repetition_penalty);
      }
      if (rules.no_repeat_ngram > 0) ban_repeats(ids, rules.no_repeat_ngram, banned[r]);
      for (const auto& row_of_words : rules.bad_words) ban_last_of(row_of_words, ids, banned[r]);
      if (static_cast<int64_t>(rows[r].words.size()) < rules.min_length ||
          static_cast<int64_t>(ids.size()) < rules.min_total_length) {
        banned[r].insert(banned[r].end(), options_.eos.begin(), options_.eos.end());
      }
    }
    return banned;
  }

  /// Scores of the words as the rules have left them, where they are log p.
  void score(std::vector<NextWord>& words) const {
    for (size_t i = 0; i < words.size(); ++i) {
      if (words[i].id < 0) continue;
      const auto row = static_cast<int64_t>(i) / options_.count;
      words[i].log_p = values(row)[static_cast<size_t>(words[i].id)];
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

  const NextWordsOptions& options_;
  Rows logits_;
};

}  // namespace

std::vector<NextWord> next_words(const nn::WordOutput& output, const Tensor& h, const nn::Run& run,
                                 std::span<const WordsSoFar> rows, const NextWordsOptions& o) {
  std::vector<int32_t> forced;
  std::vector<double> draws;
  for (const WordsSoFar& row : rows) {
    forced.push_back(row.forced);
    draws.push_back(row.draw);
  }
  BestWordsOptions wanted = {
      .count = o.count, .suppressed = o.suppressed, .forced = forced, .scores = o.scores};
  if (!o.rules.any() && !o.sampling) return best_words(output, h, run, wanted);
  const Tensor logits = output(h, run);  // whole: rules change them in place
  const Rules rules(o, logits.rows());
  std::vector<std::vector<int32_t>> banned;
  if (o.rules.any()) banned = rules.apply(rows);
  wanted.banned = banned;
  std::vector<NextWord> next =
      o.sampling ? sample_words(logits, draws, {*o.sampling, o.suppressed, banned, forced})
                 : best_words(logits, wanted);
  const auto count = static_cast<size_t>(o.count);
  for (size_t r = 0; r < rows.size(); ++r) {
    if (next[r * count].id >= 0) continue;
    BestWordsOptions anything = {.suppressed = o.suppressed};
    if (!o.eos.empty()) anything.forced = o.eos.first(1);
    next[r * count] = best_words(logits.slice(0, static_cast<int64_t>(r), 1), anything)[0];
    check(next[r * count].id >= 0, ErrorKind::usage, "all words of the vocabulary are suppressed");
  }
  if (o.penalises_log_p && o.rules.any()) rules.score(next);
  return next;
}

}  // namespace heddle
