// The k best of a row by a threshold that rises while the row is read; nothing is sorted.
#include "heddle/infer/decoding/best_tokens.h"

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
class Search {
 public:
  Search(int64_t rows, int64_t vocab, const BestTokensOptions& options)
      : options_(options),
        blocks_(blocks_of(vocab, LogitScanArgs::kBlock)),
        sum_blocks_(blocks_of(vocab, LogitScanArgs::kSumBlock)),
        maxima_(static_cast<size_t>(rows * blocks_)),
        sums_(static_cast<size_t>(rows * sum_blocks_)),
        best_(static_cast<size_t>(rows)) {}

  // logits: [rows, some], of the ids from `first` on, a multiple of kSumBlock
  void add(const Rows& logits, int64_t first) {
    parallel_blocks(logits.rows, kRows, [&](int64_t begin, int64_t end) {
      const int64_t n = std::min(end, logits.rows) - begin;
      kernels().scan_logits({.logits = logits.slice(begin, n),
                             .maxima = maxima(begin, first),
                             .sums = sums(begin) + first / LogitScanArgs::kSumBlock,
                             .wants_sums = options_.scores,
                             .maxima_stride = blocks_,
                             .sums_stride = sum_blocks_});
      for (int64_t r = begin; r < begin + n; ++r) {
        look(std::span(logits.row<float>(r), static_cast<size_t>(logits.width)), r, first);
      }
    });
  }

  // Row r: the largest logit, and log sum e^(logit - largest), or 0 without scores.
  LogitScale scale(int64_t r) {
    const float *most = maxima(r, 0), *sum = sums(r);
    LogitScale scale = {.most = *std::max_element(most, most + blocks_), .log_sum = 0};
    float total = 0;
    for (int64_t i = 0; i < sum_blocks_; ++i) {
      constexpr int64_t kEach = LogitScanArgs::kSumBlock / LogitScanArgs::kBlock;
      const float* last = std::min(most + (i + 1) * kEach, most + blocks_);
      // Without scores a sum is 0, or NaN.
      total += options_.scores
                   ? sum[i] * std::exp(*std::max_element(most + i * kEach, last) - scale.most)
                   : sum[i];
    }
    if (options_.scores || std::isnan(total)) scale.log_sum = std::log(total);
    check(
        std::isfinite(scale.most) && std::isfinite(scale.log_sum), ErrorKind::data,
        "the model gives no finite probability to any token; its weights are damaged, or too large "
        "for this precision (try --precision f32)");
    return scale;
  }

  std::vector<NextToken> finish() {
    std::vector<NextToken> tokens(best_.size() * static_cast<size_t>(options_.count));
    parallel_blocks(static_cast<int64_t>(best_.size()), kRows, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < std::min(end, static_cast<int64_t>(best_.size())); ++r) {
        const LogitScale s = scale(r);
        NextToken* to = tokens.data() + r * options_.count;
        for (const Logit& l : best_[static_cast<size_t>(r)]) {
          *to++ = {l.id, options_.scores ? s.log_p(l.value) : 0};
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

  // Keeps the `count` largest of row r that may come, largest first, the earlier first among
  // equals. Only blocks whose maximum is above the threshold are looked at.
  void look(std::span<const float> x, int64_t r, int64_t first) {
    constexpr size_t kBlock = LogitScanArgs::kBlock;
    std::vector<Logit>& best = best_[static_cast<size_t>(r)];
    const BestTokensOptions& o = options_;
    if (!o.forced.empty() && o.forced[r] >= 0) {
      const auto at = static_cast<size_t>(o.forced[r] - first);
      if (o.forced[r] >= first && at < x.size()) best.assign(1, {o.forced[r], x[at]});
      return;
    }
    const std::span<const int32_t> banned =
        o.banned.empty() ? std::span<const int32_t>() : std::span<const int32_t>(o.banned[r]);
    const auto count = static_cast<size_t>(o.count);
    const auto threshold = [&] { return best.size() < count ? kNone : best.back().value; };
    const float* most = maxima(r, first);
    for (size_t b = 0; b * kBlock < x.size(); ++b) {
      if (!(most[b] > threshold())) continue;
      for (size_t i = b * kBlock; i < std::min(x.size(), (b + 1) * kBlock); ++i) {
        if (!(x[i] > threshold())) continue;
        const auto id = static_cast<int32_t>(first + static_cast<int64_t>(i));
        if (contains(o.suppressed, id) || contains(banned, id)) continue;
        if (best.size() == count) best.pop_back();
        const auto behind =
            std::find_if(best.begin(), best.end(), [&](const Logit& l) { return l.value < x[i]; });
        best.insert(behind, {id, x[i]});
      }
    }
  }

  const BestTokensOptions options_;
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

}  // namespace

LogitScale scale_of_row(const Rows& logits, int64_t row) {
  Search search(1, logits.width, {});
  search.add(logits.slice(row, 1), 0);
  return search.scale(0);
}

std::vector<NextToken> best_tokens(const Tensor& logits, const BestTokensOptions& options) {
  const Rows rows = logits.rows();
  const ProfiledCall timed("best_tokens", {.bytes = rows.rows * rows.width * 4});
  Search search(rows.rows, rows.width, options);
  search.add(rows, 0);
  return search.finish();
}

std::vector<NextToken> best_tokens(const nn::OutputProjection& output, const Tensor& h,
                                   const nn::Run& run, const BestTokensOptions& options) {
  const int64_t rows = h.size(0), vocab = output.vocab();
  const int64_t part = output.is_product() ? part_of(rows) : vocab;
  Search search(rows, vocab, options);
  for (int64_t first = 0; first < vocab; first += part) {
    const Tensor logits = output(h, run, first, std::min(part, vocab - first));
    const ProfiledCall timed("best_tokens", {.bytes = rows * logits.size(1) * 4});
    search.add(logits.rows(), first);
  }
  return search.finish();
}

}  // namespace heddle
