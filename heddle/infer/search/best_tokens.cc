// The k best of a row by a threshold that rises while the row is read; nothing is sorted.
#include "heddle/infer/search/best_tokens.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "heddle/base/parallel.h"
#include "heddle/base/profile.h"
#include "heddle/kernels/kernels.h"

namespace heddle {
namespace {

constexpr float kNone = -std::numeric_limits<float>::infinity();

struct Logit {
  int32_t id;
  float value;
};

// The rows' largest logits, and what turns them into log p, from parts of the vocabulary in order.
class TopTokens {
 public:
  TopTokens(std::span<const BestTokensRow> rows, int64_t vocab)
      : rows_(rows),
        blocks_(blocks_of(vocab, LogitScanArgs::kBlock)),
        sum_blocks_(blocks_of(vocab, LogitScanArgs::kSumBlock)),
        maxima_(rows.size() * static_cast<size_t>(blocks_), kNone),
        sums_(rows.size() * static_cast<size_t>(sum_blocks_)),
        best_(rows.size()),
        forced_(rows.size(), kNone) {}

  // logits: [rows, some], of the ids from `first` on, a multiple of kSumBlock
  void add(const Rows& logits, int64_t first) {
    parallel_blocks(logits.rows, kRows, [&](int64_t begin, int64_t end) {
      const int64_t n = std::min(end, logits.rows) - begin;
      if (!any_of(begin, n, [](const BestTokensRow&) { return true; })) return;
      const bool is_whole = !any_of(begin, n, [](const auto& row) { return row.width >= 0; });
      if (is_whole) scan(logits.slice(begin, n), begin, first);
      for (int64_t r = begin; r < begin + n; ++r) {
        const int64_t own = rows_[static_cast<size_t>(r)].width;
        const int64_t width = own < 0 ? logits.width : std::min(logits.width, own - first);
        if (width <= 0) continue;
        if (!is_whole) scan(logits.slice(r, 1).columns(0, width), r, first);
        look(std::span(logits.row<float>(r), static_cast<size_t>(width)), r, first);
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
        if (const int32_t id = rows_[row].forced; id >= 0) {
          const bool is_own = !best_[row].empty() && best_[row][0].id == id;
          *to = {id, rows_[row].scores ? s.log_p(forced_[row]) : 0, is_own};
          continue;
        }
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
  void scan(const Rows& logits, int64_t row, int64_t first) {
    kernels().scan_logits(
        {.logits = logits,
         .maxima = maxima(row, first),
         .sums = sums(row) + first / LogitScanArgs::kSumBlock,
         .wants_sums = any_of(row, logits.rows, [](const auto& wanted) { return wanted.scores; }),
         .maxima_stride = blocks_,
         .sums_stride = sum_blocks_});
  }
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
  // equals. Only what is above `limit` is looked at, block by block and in these by kGroup.
  void look(std::span<const float> x, int64_t r, int64_t first) {
    constexpr size_t kBlock = LogitScanArgs::kBlock, kGroup = 16;
    const auto row = static_cast<size_t>(r);
    std::vector<Logit>& best = best_[row];
    const BestTokensRow& o = rows_[row];
    if (o.count == 0) return;
    const auto at = static_cast<size_t>(o.forced - first);
    if (o.forced >= first && at < x.size()) forced_[row] = x[at];
    const auto count = o.forced >= 0 ? size_t{1} : static_cast<size_t>(o.count);
    const std::span most(maxima(r, first), (x.size() + kBlock - 1) / kBlock);
    float limit = best.size() < count ? below_best(most, o, count) : best.back().value;
    const auto may_come = [&](int32_t id) {
      return !contains(o.suppressed, id) && !contains(o.banned, id) &&
             (o.allowed == nullptr || o.allowed->contains(id));
    };
    for (size_t b = 0; b < most.size(); ++b) {
      if (!(most[b] > limit)) continue;
      const size_t end = std::min(x.size(), (b + 1) * kBlock);
      for (size_t begin = b * kBlock; begin < end; begin += kGroup) {
        const std::span group = x.subspan(begin, std::min(kGroup, end - begin));
        if (!any_above(group, limit)) continue;
        for (size_t i = 0; i < group.size(); ++i) {
          const auto id = static_cast<int32_t>(first + static_cast<int64_t>(begin + i));
          const Logit l = {id, group[i]};
          if (!(l.value > limit) || !may_come(id)) continue;
          if (best.size() == count) best.pop_back();
          const auto is_below = [&](const Logit& other) { return other.value < l.value; };
          best.insert(std::ranges::find_if(best, is_below), l);
          if (best.size() == count) limit = best.back().value;
        }
      }
    }
  }
  static bool any_above(std::span<const float> x, float limit) {
    int any = 0;
    for (const float value : x) any |= value > limit ? 1 : 0;
    return any != 0;
  }
  // A bound that at least `count` logits that may come are above: of the `needed` largest maxima of
  // blocks at most those of ids that may not come are lost. -inf where there are too few blocks.
  static float below_best(std::span<const float> maxima, const BestTokensRow& row, size_t count) {
    const size_t needed = count + row.suppressed.size() + row.banned.size();
    if (row.allowed != nullptr || needed > maxima.size()) return kNone;
    std::vector<float> sorted;
    sorted.reserve(maxima.size());
    for (const float most : maxima) sorted.push_back(most > kNone ? most : kNone);  // no NaN
    const auto least = sorted.begin() + static_cast<int64_t>(needed) - 1;
    std::ranges::nth_element(sorted, least, std::greater());
    return std::nextafter(*least, kNone);
  }

  std::span<const BestTokensRow> rows_;
  int64_t blocks_, sum_blocks_;
  std::vector<float> maxima_, sums_;      // [rows, blocks]
  std::vector<std::vector<Logit>> best_;  // of each row
  std::vector<float> forced_;             // of each row: the logit of the token that is forced
};

// Logits that are made at a time: what a thread holds of them then stays in its second cache.
int64_t logits_of_part() { return (in_parallel() ? 1 : num_threads()) * (int64_t{1} << 18); }
// Rows whose logits of the smallest part of the vocabulary are no more.
int64_t most_rows(int64_t vocab) {
  return logits_of_part() / std::min(vocab, LogitScanArgs::kSumBlock);
}
// Ids of a part of the vocabulary.
int64_t part_of(int64_t rows) {
  const int64_t ids = logits_of_part() / std::max<int64_t>(rows, 1);
  return std::max<int64_t>(1, ids / LogitScanArgs::kSumBlock) * LogitScanArgs::kSumBlock;
}

std::vector<BestTokensRow> rows_of(const BestTokensRow& each, std::span<const int32_t> forced,
                                   int64_t rows) {
  std::vector<BestTokensRow> all(static_cast<size_t>(rows), each);
  for (size_t r = 0; r < forced.size(); ++r) all[r].forced = forced[r];
  return all;
}

}  // namespace

void drop(const BestTokensRow& row, std::span<float> logits, int64_t first) {
  for (const std::span<const int32_t> ids : {row.suppressed, row.banned}) {
    for (const int32_t id : ids) {
      const int64_t at = id - first;
      if (at >= 0 && at < std::ssize(logits)) logits[static_cast<size_t>(at)] = kNone;
    }
  }
  for (size_t i = 0; row.allowed != nullptr && i < logits.size(); ++i) {
    if (!row.allowed->contains(static_cast<int32_t>(first) + static_cast<int32_t>(i))) {
      logits[i] = kNone;
    }
  }
}

LogitScale scale_of_row(const Rows& logits, int64_t row) {
  const BestTokensRow any;
  TopTokens top(std::span(&any, 1), logits.width);
  top.add(logits.slice(row, 1), 0);
  return top.scale(0);
}

std::vector<NextToken> best_tokens_of_rows(const Tensor& logits,
                                           std::span<const BestTokensRow> rows) {
  const Rows all = logits.rows();
  const ProfiledCall timed("best_tokens", {.bytes = all.rows * all.width * 4});
  TopTokens top(rows, all.width);
  top.add(all, 0);
  return top.finish();
}

std::vector<NextToken> best_tokens_of_rows(const nn::OutputProjection& output, const Tensor& h,
                                           const nn::Run& run, std::span<const BestTokensRow> rows,
                                           KeptLogits* kept) {
  const int64_t n = h.size(0), vocab = output.vocab();
  if (const int64_t most = most_rows(vocab); kept == nullptr && n > most && output.is_product()) {
    std::vector<NextToken> all;
    for (int64_t row = 0; row < n; row += most) {
      const int64_t some = std::min(most, n - row);
      const auto at = static_cast<size_t>(row);
      const auto found = best_tokens_of_rows(output, h.slice(0, row, some), run,
                                             rows.subspan(at, static_cast<size_t>(some)), nullptr);
      all.insert(all.end(), found.begin(), found.end());
    }
    return all;
  }
  const int64_t part = output.is_product() ? part_of(n) : vocab;
  if (kept != nullptr) kept->logits = Tensor::empty({std::ssize(kept->rows), vocab}, DType::f32);
  TopTokens top(rows, vocab);
  for (int64_t first = 0; first < vocab; first += part) {
    const Tensor logits = output(h, run, first, std::min(part, vocab - first));
    const ProfiledCall timed("best_tokens", {.bytes = n * logits.size(1) * 4});
    for (int64_t r = 0; r < n; ++r) {
      const BestTokensRow& row = rows[static_cast<size_t>(r)];
      if (!row.renormalizes || row.count == 0 || row.forced >= 0) continue;
      drop(row, {logits.rows().row<float>(r), static_cast<size_t>(logits.size(1))}, first);
    }
    top.add(logits.rows(), first);
    for (int64_t i = 0; kept != nullptr && i < std::ssize(kept->rows); ++i) {
      std::copy_n(logits.rows().row<float>(kept->rows[static_cast<size_t>(i)]), logits.size(1),
                  kept->logits.rows().row<float>(i) + first);
    }
  }
  return top.finish();
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

}  // namespace heddle
