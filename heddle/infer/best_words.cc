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

constexpr int64_t kLanes = 16, kBlock = 8 * kLanes;
constexpr float kNone = -std::numeric_limits<float>::infinity();

struct Logit {
  int32_t id;
  float value;
};

// The largest of kBlock values, in lanes so that the compiler can use vectors; NaN is skipped.
float block_max(const float* x) {
  float lanes[kLanes];
  std::fill_n(lanes, kLanes, kNone);
  for (int64_t i = 0; i < kBlock; i += kLanes) {
    for (int64_t l = 0; l < kLanes; ++l) lanes[l] = x[i + l] > lanes[l] ? x[i + l] : lanes[l];
  }
  float max = kNone;
  for (const float lane : lanes) max = lane > max ? lane : max;
  return max;
}

// The `count` largest of x[0, n), largest first, the earlier first among equals.
void largest(const float* x, int64_t n, size_t count, std::vector<Logit>& best) {
  best.clear();
  const auto threshold = [&] { return best.size() < count ? kNone : best.back().value; };
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t end = std::min(n, begin + kBlock);
    if (end - begin == kBlock && !(block_max(x + begin) > threshold())) continue;
    for (int64_t i = begin; i < end; ++i) {
      if (!(x[i] > threshold())) continue;
      if (best.size() == count) best.pop_back();
      const auto behind =
          std::find_if(best.begin(), best.end(), [&](const Logit& b) { return b.value < x[i]; });
      best.insert(behind, {static_cast<int32_t>(i), x[i]});
    }
  }
}

// The same without the suppressed ids, whose logits come back afterwards.
void largest_allowed(float* x, int64_t n, const BestWordsOptions& o, std::vector<float>& kept,
                     std::vector<Logit>& best) {
  kept.clear();
  for (const int32_t id : o.suppressed) {
    kept.push_back(x[id]);
    x[id] = kNone;
  }
  largest(x, n, static_cast<size_t>(o.count), best);
  for (size_t i = o.suppressed.size(); i-- > 0;) x[o.suppressed[i]] = kept[i];
}

void best_of_row(const Rows& logits, int64_t r, const BestWordsOptions& o, NextWord* out) {
  thread_local std::vector<Logit> best;
  thread_local std::vector<float> kept;
  float* x = logits.row<float>(r);
  if (!o.is_forced.empty() && o.is_forced[r]) {
    best.assign(1, {o.forced_id, x[o.forced_id]});
  } else {
    largest_allowed(x, logits.width, o, kept, best);
  }
  float nll = std::numeric_limits<float>::quiet_NaN();
  if (!best.empty()) {
    float loss = 0;
    kernels().cross_entropy(
        {.logits = logits.slice(r, 1), .targets = &best[0].id, .loss = &loss, .nll = &nll});
  }
  check(std::isfinite(nll), ErrorKind::data,
        "the model gives no finite probability to any word; its weights are damaged, or too large "
        "for this precision (try --precision f32)");
  for (size_t i = 0; i < best.size(); ++i) {
    out[i] = {best[i].id, (best[i].value - best[0].value) - nll};
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
