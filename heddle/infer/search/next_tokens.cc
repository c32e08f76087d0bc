// The k best of a row by a threshold that rises while the row is read; nothing is sorted. Rules
// change the logits, or ban tokens, before tokens are chosen or drawn.
#include "heddle/infer/search/next_tokens.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "heddle/base/parallel.h"
#include "heddle/base/profile.h"
#include "heddle/base/rng.h"
#include "heddle/kernels/kernels.h"

namespace heddle {
namespace {

constexpr float kNone = -std::numeric_limits<float>::infinity();

struct Logit {
  int32_t id;
  float value;
};

// The rows' largest logits, and what turns them into log p, from parts of the vocabulary in order.
class Search {
 public:
  Search(std::span<const BestTokensRow> rows, int64_t vocab)
      : rows_(rows),
        blocks_(blocks_of(vocab, LogitScanArgs::kBlock)),
        sum_blocks_(blocks_of(vocab, LogitScanArgs::kSumBlock)),
        maxima_(rows.size() * static_cast<size_t>(blocks_)),
        sums_(rows.size() * static_cast<size_t>(sum_blocks_)),
        best_(rows.size()) {}

  // logits: [rows, some], of the ids from `first` on, a multiple of kSumBlock
  void add(const Rows& logits, int64_t first) {
    parallel_blocks(logits.rows, kRows, [&](int64_t begin, int64_t end) {
      const int64_t n = std::min(end, logits.rows) - begin;
      if (!any_of(begin, n, [](const BestTokensRow&) { return true; })) return;
      kernels().scan_logits(
          {.logits = logits.slice(begin, n),
           .maxima = maxima(begin, first),
           .sums = sums(begin) + first / LogitScanArgs::kSumBlock,
           .wants_sums = any_of(begin, n, [](const BestTokensRow& row) { return row.scores; }),
           .maxima_stride = blocks_,
           .sums_stride = sum_blocks_});
      for (int64_t r = begin; r < begin + n; ++r) {
        look(std::span(logits.row<float>(r), static_cast<size_t>(logits.width)), r, first);
      }
    });
  }

  // Row r: the largest logit, and log sum e^(logit - largest), or 0 without scores.
  LogitScale scale(int64_t r) {
    const bool scores = rows_[static_cast<size_t>(r)].scores;
    const float *most = maxima(r, 0), *sum = sums(r);
    LogitScale scale = {.most = *std::max_element(most, most + blocks_), .log_sum = 0};
    float total = 0;
    for (int64_t i = 0; i < sum_blocks_; ++i) {
      constexpr int64_t kEach = LogitScanArgs::kSumBlock / LogitScanArgs::kBlock;
      const float* last = std::min(most + (i + 1) * kEach, most + blocks_);
      // Without scores a sum is 0, or NaN.
      total += scores ? sum[i] * std::exp(*std::max_element(most + i * kEach, last) - scale.most)
                      : sum[i];
    }
    if (scores || std::isnan(total)) scale.log_sum = std::log(total);
    check(
        std::isfinite(scale.most) && std::isfinite(scale.log_sum), ErrorKind::data,
        "the model gives no finite probability to any token; its weights are damaged, or too large "
        "for this precision (try `precision` f32)");
    return scale;
  }

  std::vector<NextToken> finish() {
    std::vector<int64_t> at = {0};  // of each row: its first token
    for (const BestTokensRow& row : rows_) at.push_back(at.back() + row.count);
    std::vector<NextToken> tokens(static_cast<size_t>(at.back()));
    parallel_blocks(static_cast<int64_t>(best_.size()), kRows, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < std::min(end, static_cast<int64_t>(best_.size())); ++r) {
        const auto row = static_cast<size_t>(r);
        if (rows_[row].count == 0) continue;
        const LogitScale s = scale(r);
        NextToken* to = tokens.data() + at[row];
        for (const Logit& l : best_[row]) {
          *to++ = {l.id, rows_[row].scores ? s.log_p(l.value) : 0};
        }
      }
    });
    return tokens;
  }

 private:
  static constexpr int64_t kRows = 4;  // of a call

  static int64_t blocks_of(int64_t n, int64_t block) { return (n + block - 1) / block; }
  float* maxima(int64_t r, int64_t first) {
    return maxima_.data() + r * blocks_ + first / LogitScanArgs::kBlock;
  }
  float* sums(int64_t r) { return sums_.data() + r * sum_blocks_; }
  // Whether the claim holds for one of the n rows that are wanted.
  template <class Claim>
  bool any_of(int64_t begin, int64_t n, const Claim& claim) const {
    const std::span<const BestTokensRow> rows = rows_.subspan(begin, n);
    return std::any_of(rows.begin(), rows.end(),
                       [&](const BestTokensRow& row) { return row.count > 0 && claim(row); });
  }

  // Keeps the `count` largest of row r that may come, largest first, the earlier first among
  // equals. Only blocks whose maximum is above the threshold are looked at.
  void look(std::span<const float> x, int64_t r, int64_t first) {
    constexpr size_t kBlock = LogitScanArgs::kBlock;
    std::vector<Logit>& best = best_[static_cast<size_t>(r)];
    const BestTokensRow& o = rows_[static_cast<size_t>(r)];
    if (o.count == 0) return;
    if (o.forced >= 0) {
      const auto at = static_cast<size_t>(o.forced - first);
      if (o.forced >= first && at < x.size()) best.assign(1, {o.forced, x[at]});
      return;
    }
    const auto count = static_cast<size_t>(o.count);
    const auto threshold = [&] { return best.size() < count ? kNone : best.back().value; };
    const float* most = maxima(r, first);
    for (size_t b = 0; b * kBlock < x.size(); ++b) {
      if (!(most[b] > threshold())) continue;
      for (size_t i = b * kBlock; i < std::min(x.size(), (b + 1) * kBlock); ++i) {
        if (!(x[i] > threshold())) continue;
        const auto id = static_cast<int32_t>(first + static_cast<int64_t>(i));
        if (contains(o.suppressed, id) || contains(o.banned, id)) continue;
        if (best.size() == count) best.pop_back();
        const auto behind =
            std::find_if(best.begin(), best.end(), [&](const Logit& l) { return l.value < x[i]; });
        best.insert(behind, {id, x[i]});
      }
    }
  }

  std::span<const BestTokensRow> rows_;
  int64_t blocks_, sum_blocks_;
  std::vector<float> maxima_, sums_;      // [rows, blocks]
  std::vector<std::vector<Logit>> best_;  // of each row
};

// Ids of a part of the vocabulary: what a thread holds of it then stays in its second cache.
int64_t part_of(int64_t rows) {
  constexpr int64_t kBytes = 1 << 20;
  const int64_t threads = in_parallel() ? 1 : num_threads();
  const int64_t ids = threads * kBytes / (std::max<int64_t>(rows, 1) * 4);
  return std::max<int64_t>(1, ids / LogitScanArgs::kSumBlock) * LogitScanArgs::kSumBlock;
}

std::vector<BestTokensRow> rows_of(const BestTokensRow& each, std::span<const int32_t> forced,
                                   int64_t rows) {
  std::vector<BestTokensRow> all(static_cast<size_t>(rows), each);
  for (size_t r = 0; r < forced.size(); ++r) all[r].forced = forced[r];
  return all;
}

std::vector<NextToken> best_tokens_of_rows(const Tensor& logits,
                                           std::span<const BestTokensRow> rows) {
  const Rows all = logits.rows();
  const ProfiledCall timed("best_tokens", {.bytes = all.rows * all.width * 4});
  Search search(rows, all.width);
  search.add(all, 0);
  return search.finish();
}

// Rows whose logits are wanted too.
struct KeptLogits {
  std::span<const int64_t> rows;  // [kept] their numbers
  Tensor logits = {};             // [kept, vocab] f32, written
};

// kept: may be null
std::vector<NextToken> best_tokens_of_rows(const nn::OutputProjection& output, const Tensor& h,
                                           const nn::Run& run, std::span<const BestTokensRow> rows,
                                           KeptLogits* kept = nullptr) {
  const int64_t n = h.size(0), vocab = output.vocab();
  const int64_t part = output.is_product() ? part_of(n) : vocab;
  if (kept != nullptr) kept->logits = Tensor::empty({std::ssize(kept->rows), vocab}, DType::f32);
  Search search(rows, vocab);
  for (int64_t first = 0; first < vocab; first += part) {
    const Tensor logits = output(h, run, first, std::min(part, vocab - first));
    const ProfiledCall timed("best_tokens", {.bytes = n * logits.size(1) * 4});
    search.add(logits.rows(), first);
    for (int64_t i = 0; kept != nullptr && i < std::ssize(kept->rows); ++i) {
      std::copy_n(logits.rows().row<float>(kept->rows[static_cast<size_t>(i)]), logits.size(1),
                  kept->logits.rows().row<float>(i) + first);
    }
  }
  return search.finish();
}

}  // namespace

LogitScale scale_of_row(const Rows& logits, int64_t row) {
  const BestTokensRow any;
  Search search(std::span(&any, 1), logits.width);
  search.add(logits.slice(row, 1), 0);
  return search.scale(0);
}

std::vector<NextToken> best_tokens(const Tensor& logits, const BestTokensRow& each,
                                   std::span<const int32_t> forced) {
  return best_tokens_of_rows(logits, rows_of(each, forced, logits.rows().rows));
}

std::vector<NextToken> best_tokens(const nn::OutputProjection& output, const Tensor& h,
                                   const nn::Run& run, const BestTokensRow& each,
                                   std::span<const int32_t> forced) {
  return best_tokens_of_rows(output, h, run, rows_of(each, forced, h.size(0)));
}

// --- rules ---------------------------------------------------------------------------------------

namespace {

bool has_rules(const NextTokensOptions& o) {
  const SearchConfig& s = *o.search;
  return s.no_repeat_ngram.value_or(0) > 0 || s.repetition_penalty.value_or(1) != 1 ||
         s.min_new_tokens.value_or(0) > 0 || s.min_length.value_or(0) > 0 ||
         !o.banned_ngrams.empty();
}

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

// Applies its rules to a row of logits, which change in place: to log p where the penalty is one of
// log p. returns: what must not come
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
  if (std::ssize(row.tokens) < search.min_new_tokens.value_or(0) ||
      std::ssize(ids) < search.min_length.value_or(0)) {
    banned.insert(banned.end(), o.ends.begin(), o.ends.end());
  }
  return banned;
}

// The token where the rules leave none.
NextToken without_rules(const TokensSoFar& row, const Tensor& logits, int64_t r) {
  const NextTokensOptions& o = *row.options;
  const BestTokensRow anything = {.suppressed = o.suppressed,
                                  .forced = o.ends.empty() ? -1 : o.ends[0]};
  const NextToken token = best_tokens(logits.slice(0, r, 1), anything)[0];
  check(token.id >= 0, ErrorKind::usage, "all tokens of the vocabulary are suppressed");
  return token;
}

bool is_sampled(const TokensSoFar& row) { return row.options->search->samples; }

bool needs_logits(const TokensSoFar& row) { return is_sampled(row) || has_rules(*row.options); }

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
    const bool is_drawn = is_sampled(row);
    searched.push_back({is_drawn ? 0 : o.count, o.suppressed, banned[r], row.forced, o.scores});
    draws.push_back({is_drawn ? o.search : nullptr, row.draw, o.suppressed, banned[r], row.forced});
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
  if (is_top_k || top_p < 1) {
    std::ranges::sort(tokens, {}, &DrawCandidate::id);
  }
}

const DrawCandidate& drawn(const std::vector<DrawCandidate>& tokens, double draw) {
  double total = 0, sum = 0;
  for (const DrawCandidate& c : tokens) total += c.weight;
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
  if (o.forced >= 0) return {o.forced, scale.log_p(x[o.forced])};
  const double temperature = o.search->temperature.value_or(1);
  collect(x, o, temperature, tokens);
  if (tokens.empty()) return {};
  if (temperature == 0) {
    const DrawCandidate& token = *std::min_element(tokens.begin(), tokens.end(), is_likelier);
    return {token.id, scale.log_p(token.logit)};
  }
  keep_likely(*o.search, tokens);
  const DrawCandidate& token = drawn(tokens, o.draw);
  return {token.id, scale.log_p(token.logit)};
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
