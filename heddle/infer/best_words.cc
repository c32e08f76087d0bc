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

// The `count` largest of a row that are not suppressed, largest first, the earlier first among
// equals. Only blocks whose maximum is above the threshold are looked at.
void largest(std::span<const float> x, std::span<const float> maxima, const BestWordsOptions& o,
             std::vector<Logit>& best) {
  constexpr size_t kBlock = LogitScanArgs::kBlock;
  const auto count = static_cast<size_t>(o.count);
  best.clear();
  const auto threshold = [&] { return best.size() < count ? kNone : best.back().value; };
  for (size_t b = 0; b < maxima.size(); ++b) {
    if (!(maxima[b] > threshold())) continue;
    for (size_t i = b * kBlock; i < std::min(x.size(), (b + 1) * kBlock); ++i) {
      if (!(x[i] > threshold())) continue;
      const auto id = static_cast<int32_t>(i);
      if (std::find(o.suppressed.begin(), o.suppressed.end(), id) != o.suppressed.end()) continue;
      if (best.size() == count) best.pop_back();
      const auto behind =
          std::find_if(best.begin(), best.end(), [&](const Logit& l) { return l.value < x[i]; });
      best.insert(behind, {id, x[i]});
    }
  }
}

void best_of_row(const Rows& logits, int64_t r, const BestWordsOptions& o, NextWord* out) {
  thread_local std::vector<Logit> best;
  thread_local std::vector<float> maxima;
  const std::span<const float> x(logits.row<float>(r), static_cast<size_t>(logits.width));
  maxima.resize((x.size() + LogitScanArgs::kBlock - 1) / LogitScanArgs::kBlock);
  float log_sum = 0;
  kernels().scan_logits(
      {.logits = logits.slice(r, 1), .maxima = maxima.data(), .log_sum = &log_sum});
  const float most = *std::max_element(maxima.begin(), maxima.end());
  check(std::isfinite(most) && std::isfinite(log_sum), ErrorKind::data,
        "the model gives no finite probability to any word; its weights are damaged, or too large "
        "for this precision (try --precision f32)");
  if (!o.is_forced.empty() && o.is_forced[r]) {
    best.assign(1, {o.forced_id, x[o.forced_id]});
  } else {
    largest(x, maxima, o, best);
  }
  for (size_t i = 0; i < best.size(); ++i) {
    out[i] = {best[i].id, (best[i].value - most) - log_sum};
  }
}

}  // namespace

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
