// Tokens are chosen or drawn as rules leave them (rules.h). Of beam search: which
// continuations live, which end, and when nothing can improve; samples do not compete.
#include "heddle/infer/search/beam.h"

#include <algorithm>
#include <cmath>

#include "heddle/base/parallel.h"
#include "heddle/base/profile.h"
#include "heddle/base/rng.h"
#include "heddle/infer/search/rules.h"
#include "heddle/ops/embedding.h"

namespace heddle {

// --- which tokens come ------------------------------------------------------------------------

namespace {

// The token where the rules leave none.
NextToken without_rules(const TokensSoFar& row, const Tensor& logits, int64_t r) {
  const NextTokensOptions& o = *row.options;
  const bool may_end = !o.ends.empty() && row.allowed == nullptr;
  const BestTokensRow anything = {
      .suppressed = o.suppressed, .forced = may_end ? o.ends[0] : -1, .allowed = row.allowed};
  NextToken token = best_tokens(logits.slice(0, r, 1), anything)[0];
  token.is_own = true;  // nothing else would have come
  check(token.id >= 0, ErrorKind::usage, "all tokens of the vocabulary are suppressed");
  return token;
}

bool is_sampled(const TokensSoFar& row) { return row.options->search->samples; }
bool needs_logits(const TokensSoFar& row) {
  const NextTokensOptions& o = *row.options;
  return is_sampled(row) || has_rules(o) || (o.search->renormalizes() && o.candidates != nullptr);
}

using Tokens = std::vector<NextToken>;

// The tokens of all rows: `first` are those of the rows for which is_first holds.
template <class IsFirst>
Tokens merge(std::span<const TokensSoFar> rows, const Tokens& first, const Tokens& second,
             const IsFirst& is_first) {
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
  std::vector<std::vector<int32_t>> banned(rows.size());
  std::vector<SampleRow> draws;
  std::vector<BestTokensRow> searched;
  for (size_t r = 0; r < rows.size(); ++r) {
    const TokensSoFar& row = rows[r];
    const NextTokensOptions& o = *row.options;
    const bool is_drawn = is_sampled(row);
    banned[r] = apply_rules(row, logits.rows(), static_cast<int64_t>(r));
    renormalize(row, banned[r], logits.rows(), static_cast<int64_t>(r));
    searched.push_back({.count = is_drawn ? 0 : o.count,
                        .suppressed = o.suppressed,
                        .banned = banned[r],
                        .forced = row.forced,
                        .scores = o.scores,
                        .allowed = row.allowed});
    draws.push_back({is_drawn ? o.search : nullptr, row.draw, o.suppressed, banned[r], row.forced,
                     row.allowed});
  }
  const bool all_sampled = std::all_of(rows.begin(), rows.end(), is_sampled);
  Tokens next = merge(rows, sample_tokens(logits, draws),
                      all_sampled ? Tokens() : best_tokens_of_rows(logits, searched), is_sampled);
  size_t at = 0;
  for (size_t r = 0; r < rows.size(); ++r) {
    const NextTokensOptions& o = *rows[r].options;
    const auto row = static_cast<int64_t>(r);
    if (next[at].id < 0) next[at] = without_rules(rows[r], logits, row);
    for (int64_t i = 0; i < o.count; ++i, ++at) {  // scores as the rules have left them
      if (!o.penalises_log_p || !has_rules(o) || next[at].id < 0) continue;
      next[at].log_p = logits.rows().row<float>(row)[next[at].id];
    }
  }
  return next;
}

// --- draws: temperature, top-k, top-p and min-p, then one by the inverse of the running sum ------

struct DrawCandidate {
  int32_t id;
  float logit;
  double weight;  // e^((logit - largest) / temperature)
};

bool is_likelier(const DrawCandidate& a, const DrawCandidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

// What may come in a row, by id.
void collect(std::span<const float> x, const SampleRow& o, double temperature,
             std::vector<DrawCandidate>& tokens) {
  tokens.clear();
  float largest = -INFINITY;
  for (size_t i = 0; i < x.size(); ++i) {
    const auto id = static_cast<int32_t>(i);
    if (x[i] == -INFINITY || contains(o.suppressed, id) || contains(o.banned, id)) continue;
    if (o.allowed != nullptr && !o.allowed->contains(id)) continue;
    tokens.push_back({id, x[i], 0});
    largest = std::max(largest, x[i]);
  }
  for (DrawCandidate& c : tokens) {
    c.weight = std::exp((static_cast<double>(c.logit) - largest) / temperature);
  }
}

// The likeliest token is always kept. The order is by id again afterwards.
void keep_likely(const SearchConfig& search, std::vector<DrawCandidate>& tokens) {
  const int64_t top_k = search.top_k.value_or(0);
  const double top_p = search.top_p.value_or(1), min_p = search.min_p.value_or(0);
  const bool is_top_k = top_k > 0 && top_k < static_cast<int64_t>(tokens.size());
  if (is_top_k) {
    std::nth_element(tokens.begin(), tokens.begin() + (top_k - 1), tokens.end(), is_likelier);
    tokens.resize(static_cast<size_t>(top_k));
  }
  if (top_p < 1) {
    std::sort(tokens.begin(), tokens.end(), is_likelier);
    double total = 0, sum = 0;
    for (const DrawCandidate& c : tokens) total += c.weight;
    size_t kept = 0;
    while (kept < tokens.size() && sum < top_p * total) sum += tokens[kept++].weight;
    tokens.resize(std::max<size_t>(kept, 1));
  }
  if (min_p > 0) {  // the likeliest has the weight 1
    std::erase_if(tokens, [&](const DrawCandidate& c) { return c.weight < min_p; });
  }
  if (is_top_k || top_p < 1) std::ranges::sort(tokens, {}, &DrawCandidate::id);
}

double total_weight(const std::vector<DrawCandidate>& tokens) {
  double total = 0;
  for (const DrawCandidate& c : tokens) total += c.weight;
  return total;
}

const DrawCandidate& drawn(const std::vector<DrawCandidate>& tokens, double draw) {
  const double total = total_weight(tokens);
  double sum = 0;
  for (const DrawCandidate& c : tokens) {
    sum += c.weight;
    if (sum > draw * total) return c;
  }
  return tokens.back();  // draw * total was rounded up to the sum
}

NextToken sample_of_row(const Rows& logits, int64_t r, const SampleRow& o) {
  thread_local std::vector<DrawCandidate> tokens;
  const std::span<const float> x(logits.row<float>(r), static_cast<size_t>(logits.width));
  const LogitScale scale = scale_of_row(logits, r);
  if (o.forced >= 0) {
    SampleRow free = o;
    free.forced = -1;
    return {o.forced, scale.log_p(x[o.forced]), sample_of_row(logits, r, free).id == o.forced};
  }
  const double temperature = o.search->temperature.value_or(1);
  collect(x, o, temperature, tokens);
  if (tokens.empty()) return {};
  if (temperature == 0) {
    const DrawCandidate& token = *std::min_element(tokens.begin(), tokens.end(), is_likelier);
    return {token.id, scale.log_p(token.logit)};
  }
  keep_likely(*o.search, tokens);
  const DrawCandidate& token = drawn(tokens, o.draw);
  if (!o.search->renormalizes()) return {token.id, scale.log_p(token.logit)};
  return {token.id, static_cast<float>(std::log(token.weight / total_weight(tokens)))};
}

bool is_limited(const TokensSoFar& row) { return row.options->candidates != nullptr; }

// next_tokens() of rows that may be any of the vocabulary.
Tokens tokens_of_all(const nn::OutputProjection& output, const Tensor& h, const nn::Run& run,
                     std::span<const TokensSoFar> rows) {
  std::vector<BestTokensRow> wanted;
  std::vector<int64_t> numbers;
  std::vector<TokensSoFar> chosen;  // the rows of these numbers
  for (size_t r = 0; r < rows.size(); ++r) {
    const bool is_whole = needs_logits(rows[r]);
    const NextTokensOptions& o = *rows[r].options;
    wanted.push_back({.count = is_whole ? 0 : o.count,
                      .suppressed = o.suppressed,
                      .forced = rows[r].forced,
                      .scores = o.scores,
                      .allowed = rows[r].allowed,
                      .renormalizes = o.search->renormalizes()});
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

// The same of rows that are limited to candidates. logits: [rows, limited.ids()]
Tokens tokens_of_candidates(const CandidateOutput& limited, const Tensor& logits, int64_t vocab,
                            std::span<const TokensSoFar> rows) {
  std::vector<const Candidates*> sets, whole;
  std::vector<int64_t> numbers, whole_numbers;
  std::vector<BestTokensRow> wanted;
  std::vector<TokensSoFar> chosen;
  for (size_t r = 0; r < rows.size(); ++r) {
    const NextTokensOptions& o = *rows[r].options;
    if (needs_logits(rows[r])) {
      whole.push_back(o.candidates);
      whole_numbers.push_back(static_cast<int64_t>(r));
      chosen.push_back(rows[r]);
      continue;
    }
    sets.push_back(o.candidates);
    numbers.push_back(static_cast<int64_t>(r));
    wanted.push_back({.count = o.count,
                      .suppressed = o.candidates->suppressed,
                      .forced = o.candidates->number_of(rows[r].forced),
                      .scores = o.scores,
                      .width = std::ssize(o.candidates->ids)});
  }
  const auto logits_of = [&](int64_t row) { return logits.rows().row<float>(row); };
  Tokens likeliest;
  if (!numbers.empty()) {
    likeliest = best_tokens_of_rows(limited.own_columns(logits, numbers, sets), wanted);
    size_t at = 0;
    for (size_t i = 0; i < sets.size(); ++i) {
      const std::span tokens(likeliest.data() + at, static_cast<size_t>(wanted[i].count));
      at += tokens.size();
      limited.name_tokens(tokens, logits_of(numbers[i]), *sets[i], wanted[i].scores);
    }
  }
  if (chosen.empty()) return likeliest;
  const Tensor all = limited.in_vocabulary(logits, whole_numbers, whole, vocab);
  std::vector<float> shares;
  for (size_t i = 0; i < whole.size(); ++i) {
    const LogitScale scale = scale_of_row(all.rows(), static_cast<int64_t>(i));
    shares.push_back(CandidateOutput::log_share(logits_of(whole_numbers[i]), *whole[i],
                                                scale.most + scale.log_sum));
  }
  Tokens second = choose(all, chosen);
  size_t at = 0;
  for (size_t i = 0; i < whole.size(); ++i) {
    for (int64_t k = 0; k < chosen[i].options->count; ++k) second[at++].log_p += shares[i];
  }
  return merge(rows, second, likeliest, needs_logits);
}

}  // namespace

double sample_draw(uint64_t seed, int64_t line, int64_t sample, int64_t position) {
  static constexpr uint64_t kSite = hash_name("translate.sample");
  const RngKey key =
      make_key(seed, static_cast<uint64_t>(sample), kSite, static_cast<uint64_t>(line));
  const auto at = static_cast<uint64_t>(position);
  const PhiloxCounter random =
      philox({static_cast<uint32_t>(at), static_cast<uint32_t>(at >> 32), 0, 0}, key);
  const uint64_t bits = (uint64_t{random[0]} << 32 | random[1]) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

std::vector<NextToken> sample_tokens(const Tensor& logits, std::span<const SampleRow> rows) {
  const Rows all = logits.rows();
  std::vector<int64_t> numbers;
  for (int64_t r = 0; r < all.rows; ++r) {
    if (rows[r].search != nullptr) numbers.push_back(r);
  }
  const ProfiledCall timed("sample_tokens", {.bytes = std::ssize(numbers) * all.width * 4});
  std::vector<NextToken> tokens(numbers.size());
  parallel_for(std::ssize(numbers),
               [&](int64_t i) { tokens[i] = sample_of_row(all, numbers[i], rows[numbers[i]]); });
  return tokens;
}

std::vector<NextToken> next_tokens(const nn::OutputProjection& output, const Tensor& h,
                                   const nn::Run& run, std::span<const TokensSoFar> rows,
                                   const CandidateOutput* limited) {
  const auto count = std::count_if(rows.begin(), rows.end(), is_limited);
  if (count == 0) return tokens_of_all(output, h, run, rows);
  check(limited != nullptr, ErrorKind::internal, "candidates that nothing holds");
  if (count == std::ssize(rows)) {
    return tokens_of_candidates(*limited, (*limited)(h), output.vocab(), rows);
  }
  std::vector<int32_t> numbers[2];
  std::vector<TokensSoFar> parts[2];
  for (size_t r = 0; r < rows.size(); ++r) {
    numbers[is_limited(rows[r])].push_back(static_cast<int32_t>(r));
    parts[is_limited(rows[r])].push_back(rows[r]);
  }
  const Tokens first = tokens_of_candidates(*limited, (*limited)(gather_rows(h, numbers[1])),
                                            output.vocab(), parts[1]);
  return merge(rows, first, tokens_of_all(output, gather_rows(h, numbers[0]), run, parts[0]),
               is_limited);
}

// --- which hypotheses go on ----------------------------------------------------------------------

namespace {

struct BeamCandidate {
  double log_p;
  int32_t parent;
  int32_t rank;  // among the parent's continuations: keeps their order where sums round alike
  NextToken token;

  bool operator<(const BeamCandidate& o) const {
    if (log_p != o.log_p) return log_p > o.log_p;
    return parent != o.parent ? parent < o.parent : rank < o.rank;
  }
};

}  // namespace

double length_penalty(int64_t length, double alpha, LengthPenalty kind) {
  const auto n = static_cast<double>(length);
  return std::pow(kind == LengthPenalty::wu ? (5.0 + n) / 6.0 : n, alpha);
}

BeamSearch::BeamSearch(const SearchConfig& search, LengthPenalty penalty, int64_t longest_output,
                       GoesOn goes_on)
    : early_stopping_(search.early_stopping),
      penalty_(penalty),
      beam_(search.beam.value_or(1)),
      longest_output_(longest_output),
      n_best_(static_cast<size_t>(search.n_best)),
      kept_(static_cast<size_t>(search.samples ? search.n_best : std::max(beam_, search.n_best))),
      samples_(search.samples),
      alpha_(search.length_penalty.value_or(1)),
      ends_(search.ends()),
      goes_on_(std::move(goes_on)) {
  live_.resize(samples_ ? n_best_ : 1);
  for (size_t i = 0; i < live_.size(); ++i) live_[i].sample = static_cast<int64_t>(i);
}

int64_t BeamSearch::continuations() const {
  return beam_ == 1 ? 1 : beam_ * std::max<int64_t>(2, 1 + std::ssize(ends_));
}

void BeamSearch::advance(std::span<const NextToken> next) {
  just_ended_.clear();
  samples_ ? advance_samples(next) : advance_beam(next);
  ++length_;
  if (!samples_ && is_done()) live_.clear();
}

void BeamSearch::advance_beam(std::span<const NextToken> next) {
  const int64_t per_row = continuations();
  std::vector<BeamCandidate> candidates;
  for (size_t i = 0; i < next.size(); ++i) {
    if (next[i].id < 0) continue;
    const auto parent = static_cast<int32_t>(static_cast<int64_t>(i) / per_row);
    const auto rank = static_cast<int32_t>(static_cast<int64_t>(i) % per_row);
    candidates.push_back({live_[parent].log_p + next[i].log_p, parent, rank, next[i]});
  }
  const auto wanted = std::min<int64_t>(per_row, static_cast<int64_t>(candidates.size()));
  std::partial_sort(candidates.begin(), candidates.begin() + wanted, candidates.end());

  // What ends counts among the first `beam` only, so that beam 1 is greedy.
  std::vector<Hypothesis> going_on;
  for (int64_t i = 0; i < wanted && static_cast<int64_t>(going_on.size()) < beam_; ++i) {
    const BeamCandidate& c = candidates[i];
    Hypothesis h = extended(live_[c.parent], c.token, c.log_p);
    h.parent = c.parent;
    if (h.ended == EndedBy::nothing) {
      going_on.push_back(std::move(h));
    } else if (i < beam_) {
      finish(std::move(h));
    }
  }
  live_ = std::move(going_on);
}

void BeamSearch::advance_samples(std::span<const NextToken> next) {
  std::vector<Hypothesis> going_on;
  for (size_t i = 0; i < next.size(); ++i) {
    Hypothesis h = extended(live_[i], next[i], live_[i].log_p + next[i].log_p);
    h.parent = static_cast<int64_t>(i);
    if (h.ended == EndedBy::nothing) {
      going_on.push_back(std::move(h));
    } else {
      finish(std::move(h));
    }
  }
  live_ = std::move(going_on);
}

Hypothesis BeamSearch::extended(const Hypothesis& h, const NextToken& token, double log_p) const {
  Hypothesis longer = h;
  longer.log_p = log_p;
  if (contains(ends_, token.id)) {
    longer.ended = EndedBy::eos, longer.is_cut = !token.is_own;
    return longer;
  }
  longer.ids.push_back(token.id);
  longer.log_ps.push_back(token.log_p);
  if (goes_on_ && !goes_on_(longer)) {
    longer.ended = EndedBy::stop;
  } else if (is_last()) {
    longer.ended = EndedBy::length, longer.is_cut = true;
  }
  return longer;
}

void BeamSearch::finish(Hypothesis h) {
  h.score = score(h.log_p, length_ + 1);
  ++finished_;
  const auto behind = std::find_if(ended_.begin(), ended_.end(), [&](const Hypothesis& other) {
    return samples_ ? other.sample > h.sample : other.score < h.score;
  });
  just_ended_.push_back(h);
  if (behind == ended_.end() && ended_.size() == kept_) return;
  ended_.insert(behind, std::move(h));
  if (ended_.size() > kept_) ended_.pop_back();
}

bool BeamSearch::is_done() const {
  if (live_.empty()) return true;
  const bool is_full = finished_ >= beam_;
  if (early_stopping_ == "true") return is_full || !can_improve();
  if (early_stopping_ == "never") return !can_improve();
  return is_full && score(live_[0].log_p, length_) <= ended_.back().score;
}

// Sums of log p only fall, and the penalty is monotone: its best is at the shortest or the greatest
// length.
bool BeamSearch::can_improve() const {
  if (ended_.size() < n_best_) return true;
  const double bound =
      std::max(score(live_[0].log_p, length_ + 1), score(live_[0].log_p, longest_output_));
  return bound > ended_[n_best_ - 1].score;
}

}  // namespace heddle
