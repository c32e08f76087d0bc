// The k best of a row by a threshold that rises while the row is read; nothing is sorted.
#include "heddle/infer/best_words.h"

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

bool contains(std::span<const int32_t> ids, int32_t id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

// The `count` largest of row r that may come, largest first, the earlier first among equals. Only
// blocks whose maximum is above the threshold are looked at.
void largest(std::span<const float> x, std::span<const float> maxima, const BestWordsOptions& o,
             int64_t r, std::vector<Logit>& best) {
  constexpr size_t kBlock = LogitScanArgs::kBlock;
  const std::span<const int32_t> banned =
      o.banned.empty() ? std::span<const int32_t>() : std::span<const int32_t>(o.banned[r]);
  const auto count = static_cast<size_t>(o.count);
  best.clear();
  const auto threshold = [&] { return best.size() < count ? kNone : best.back().value; };
  for (size_t b = 0; b < maxima.size(); ++b) {
    if (!(maxima[b] > threshold())) continue;
    for (size_t i = b * kBlock; i < std::min(x.size(), (b + 1) * kBlock); ++i) {
      if (!(x[i] > threshold())) continue;
      const auto id = static_cast<int32_t>(i);
      if (contains(o.suppressed, id) || contains(banned, id)) continue;
      if (best.size() == count) best.pop_back();
      const auto behind =
          std::find_if(best.begin(), best.end(), [&](const Logit& l) { return l.value < x[i]; });
      best.insert(behind, {id, x[i]});
    }
  }
}

// The scale of a row (without log_sum, unless it is wanted), and the largest logit of each of its
// blocks.
LogitScale scan(const Rows& logits, int64_t r, bool wants_sum, std::vector<float>& maxima) {
  constexpr int64_t kBlock = LogitScanArgs::kBlock;
  maxima.resize(static_cast<size_t>((logits.width + kBlock - 1) / kBlock));
  LogitScale scale;
  kernels().scan_logits({.logits = logits.slice(r, 1),
                         .maxima = maxima.data(),
                         .wants_sum = wants_sum,
                         .log_sum = &scale.log_sum});
  scale.most = *std::max_element(maxima.begin(), maxima.end());
  check(std::isfinite(scale.most) && std::isfinite(scale.log_sum), ErrorKind::data,
        "the model gives no finite probability to any word; its weights are damaged, or too large "
        "for this precision (try --precision f32)");
  return scale;
}

void best_of_row(const Rows& logits, int64_t r, const BestWordsOptions& o, NextWord* out) {
  thread_local std::vector<Logit> best;
  thread_local std::vector<float> maxima;
  const std::span<const float> x(logits.row<float>(r), static_cast<size_t>(logits.width));
  const LogitScale scale = scan(logits, r, o.scores, maxima);
  if (!o.forced.empty() && o.forced[r] >= 0) {
    best.assign(1, {o.forced[r], x[o.forced[r]]});
  } else {
    largest(x, maxima, o, r, best);
  }
  for (size_t i = 0; i < best.size(); ++i) {
    out[i] = {best[i].id, o.scores ? scale.log_p(best[i].value) : 0};
  }
}

}  // namespace

LogitScale scale_of_row(const Rows& logits, int64_t row) {
  thread_local std::vector<float> maxima;
  return scan(logits, row, true, maxima);
}

std::vector<NextWord> best_words(const Tensor& logits, const BestWordsOptions& options) {
  const Rows rows = logits.rows();
  const ProfiledCall timed("best_words", {.bytes = rows.rows * rows.width * 4});
  std::vector<NextWord> words(rows.rows * options.count);
  parallel_blocks(rows.rows, 4, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      best_of_row(rows, r, options, words.data() + r * options.count);
    }
  });
  return words;
}

}  // namespace heddle
