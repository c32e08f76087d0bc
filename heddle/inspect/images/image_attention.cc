// One pass for the weights of all heads, one more for each head that is taken away; roll-out by
// following each row back through the layers.
#include "heddle/inspect/images/image_attention.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "heddle/base/error.h"
#include "heddle/base/names.h"
#include "heddle/base/parallel.h"
#include "heddle/inspect/attention_maps.h"
#include "heddle/inspect/attention_rollout.h"
#include "heddle/inspect/matrix.h"

namespace heddle::inspect {
namespace {

constexpr int64_t kMostKept = 32, kLeastKept = 4;
// Roll-out: weights that are held of all layers, and rows beyond which only those of tokens are
// made.
constexpr int64_t kMostHeld = 32'000'000, kMostRolled = 640;

// The windows of a call; one with all cells where it has none.
std::vector<AttentionWindow> windows_of(const ImageSubject& subject, const ImageCall& call) {
  if (!call.windows.empty()) return call.windows;
  AttentionWindow all;
  all.queries.resize(static_cast<size_t>(subject.grids()[call.queries].cells()));
  all.keys.resize(static_cast<size_t>(subject.grids()[call.keys].cells()));
  std::iota(all.queries.begin(), all.queries.end(), 0);
  std::iota(all.keys.begin(), all.keys.end(), 0);
  return {all};
}

int64_t weights_of(const std::vector<AttentionWindow>& windows) {
  int64_t sum = 0;
  for (const AttentionWindow& w : windows) sum += std::ssize(w.queries) * std::ssize(w.keys);
  return sum;
}

void check_number(const ImageSubject& subject, const char* flag, const std::vector<int64_t>& chosen,
                  int64_t count) {
  for (const int64_t x : chosen) {
    check(x >= 0 && x < count, ErrorKind::usage,
          "{} {}: there is none of that number; {} has {}s 0 to {}", field_name(flag), x,
          subject.path(), flag, count - 1);
  }
}

bool holds(const std::vector<int64_t>& chosen, int64_t x) {
  return chosen.empty() || std::ranges::find(chosen, x) != chosen.end();
}

// The chosen heads without their weights.
std::vector<ImageHead> chosen_heads(const ImageSubject& subject, const ImageHeadsOptions& options) {
  int64_t layers = 0, most = 0;
  for (const ImageCall& call : subject.calls()) {
    layers = std::max(layers, call.layer + 1), most = std::max(most, call.heads);
  }
  check_number(subject, "layer", options.layers, layers);
  check_number(subject, "head", options.heads, most);
  std::vector<ImageHead> heads;
  for (size_t c = 0; c < subject.calls().size(); ++c) {
    const ImageCall& call = subject.calls()[c];
    for (int64_t h = 0; h < call.heads; ++h) {
      if (!holds(options.layers, call.layer) || !holds(options.heads, h)) continue;
      heads.emplace_back();
      heads.back().call = c, heads.back().head = h;
    }
  }
  check(!heads.empty(), ErrorKind::usage,
        "`layer` and `head` together choose no head of {}; leave one of them away", subject.path());
  return heads;
}

// --- weights -------------------------------------------------------------------------------------

// Distance of two cells of one grid, as wide as a cell; -1 if one of them is no cell.
double cells_between(const CellGrid& grid, int64_t a, int64_t b) {
  const int64_t tokens = std::ssize(grid.tokens), width = grid.size.width;
  a -= tokens, b -= tokens;
  if (a < 0 || b < 0) return -1;
  return std::hypot(static_cast<double>(a / width - b / width),
                    static_cast<double>(a % width - b % width));
}

// Takes in the rows of one head, and says what can be said of them.
class HeadGatherer {
 public:
  HeadGatherer(const ImageSubject& subject, ImageHead& head)
      : grid_(subject.grids()[subject.calls()[head.call].queries]), head_(head) {
    const ImageCall& call = subject.calls()[head.call];
    has_distance_ = call.queries == call.keys && grid_.size.height > 0;
    if (has_distance_) head_.distance = 0;
    for (const AttentionWindow& w : windows_of(subject, call)) rows_ += std::ssize(w.queries);
  }

  void add(const AttentionWindow& window, const Tensor& weights) {
    const auto keys = std::ssize(window.keys);
    for (int64_t i = 0; i < std::ssize(window.queries); ++i, ++row_) {
      const float* const w = weights.data<float>() + i * keys;
      add_statistics(window, i, w);
      if (head_.kept == 0 || row_ < head_.whole_rows) {
        head_.weights.insert(head_.weights.end(), w, w + keys);
      } else {
        add_largest(w, keys);
      }
    }
  }

 private:
  void add_statistics(const AttentionWindow& window, int64_t i, const float* w) {
    double entropy = 0, distance = 0, share = 0;
    for (int64_t j = 0; j < std::ssize(window.keys); ++j) {
      const double x = w[j];
      if (x > 0) entropy -= x * std::log(x);
      if (!has_distance_) continue;
      const double d = cells_between(grid_, window.queries[i], window.keys[j]);
      if (d >= 0) distance += x * d, share += x;
    }
    head_.entropy += entropy / static_cast<double>(rows_);
    if (share == 0) return;
    const int64_t cells = grid_.size.height * grid_.size.width;
    *head_.distance += distance / share / static_cast<double>(cells);
  }

  void add_largest(const float* w, int64_t keys) {
    const int64_t kept = head_.kept;
    order_.resize(static_cast<size_t>(keys));
    std::iota(order_.begin(), order_.end(), int64_t{0});
    std::partial_sort(order_.begin(), order_.begin() + kept, order_.end(),
                      [&](int64_t a, int64_t b) { return w[a] != w[b] ? w[a] > w[b] : a < b; });
    for (int64_t k = 0; k < kept; ++k) {
      head_.columns.push_back(order_[k]);
      head_.weights.push_back(w[order_[k]]);
    }
  }

  const CellGrid& grid_;
  ImageHead& head_;
  bool has_distance_ = false;
  int64_t rows_ = 0, row_ = 0;
  std::vector<int64_t> order_;
};

// --- roll-out ------------------------------------------------------------------------------------

// One layer's heads as one matrix, window after window.
struct FusedHeads {
  std::vector<float> mean, max;

  // Nothing of padding.
  void add(const AttentionWindow& window, const Tensor& weights, size_t at, int64_t heads) {
    const float* w = weights.data<float>();
    const auto count = static_cast<size_t>(weights.elements());
    if (mean.size() < at + count) mean.resize(at + count), max.resize(at + count);
    for (const int32_t query : window.queries) {
      for (const int32_t key : window.keys) {
        const float weight = query >= 0 && key >= 0 ? *w : 0;
        mean[at] += weight / static_cast<float>(heads);
        max[at] = std::max(max[at], weight);
        ++at, ++w;
      }
    }
  }
};

// A share of a cell of the smaller grid is shared out among those that were merged into it: two by
// two, fewer at an odd edge, behind which the merging pads.
std::vector<double> spread(const std::vector<double>& row, const CellGrid& from,
                           const CellGrid& to) {
  check(from.size.height == (to.size.height + 1) / 2 && from.size.width == (to.size.width + 1) / 2,
        ErrorKind::internal, "{} x {} cells are not merged into {} x {}", to.size.height,
        to.size.width, from.size.height, from.size.width);
  std::vector<double> result(static_cast<size_t>(to.cells()));
  const int64_t tokens = std::ssize(from.tokens);
  for (int64_t t = 0; t < tokens; ++t) result[t] = row[t];
  for (int64_t y = 0; y < from.size.height; ++y) {
    const int64_t y1 = std::min(2 * y + 2, to.size.height);
    for (int64_t x = 0; x < from.size.width; ++x) {
      const int64_t x1 = std::min(2 * x + 2, to.size.width);
      const double each =
          row[tokens + y * from.size.width + x] / static_cast<double>((y1 - 2 * y) * (x1 - 2 * x));
      for (int64_t v = 2 * y; v < y1; ++v) {
        for (int64_t u = 2 * x; u < x1; ++u) result[tokens + v * to.size.width + u] += each;
      }
    }
  }
  return result;
}

// row (A + I) / 2, each row of that divided by its sum.
std::vector<double> step_back(const std::vector<double>& row,
                              const std::vector<AttentionWindow>& windows,
                              const std::vector<float>& a) {
  std::vector<double> result(row.size());
  size_t at = 0;
  for (const AttentionWindow& window : windows) {
    const size_t keys = window.keys.size();
    for (const int32_t query : window.queries) {
      const float* const w = a.data() + std::exchange(at, at + keys);
      if (query < 0 || row[query] == 0) continue;
      const double sum = std::accumulate(w, w + keys, 1.0);
      const double share = row[query] / sum;
      result[query] += share;
      for (size_t j = 0; j < keys; ++j) {
        if (window.keys[j] >= 0) result[window.keys[j]] += share * w[j];
      }
    }
  }
  return result;
}

// The layers whose queries and keys are the same cells.
std::vector<size_t> rolled_calls(const ImageSubject& subject) {
  std::vector<size_t> calls;
  int64_t held = 0;
  for (size_t c = 0; c < subject.calls().size(); ++c) {
    const ImageCall& call = subject.calls()[c];
    if (call.queries != call.keys || subject.grids()[call.keys].size.height == 0) continue;
    held += weights_of(windows_of(subject, call));
    calls.push_back(c);
  }
  return held <= kMostHeld ? calls : std::vector<size_t>{};
}

// Every cell if there are few, else the tokens; before them the mean of all, where it or no token
// is classified.
std::vector<int64_t> rolled_rows(const CellGrid& grid, bool has_mean) {
  std::vector<int64_t> rows(
      static_cast<size_t>(grid.cells() <= kMostRolled ? grid.cells() : std::ssize(grid.tokens)));
  std::iota(rows.begin(), rows.end(), 0);
  if (has_mean) rows.insert(rows.begin(), -1);
  return rows;
}

// What is followed back from a row of rolled_rows(): all of it is at that cell, or equal shares are
// at all that are of the image.
std::vector<double> begun_row(const CellGrid& grid, int64_t at) {
  std::vector<double> row(static_cast<size_t>(grid.cells()));
  if (at >= 0) {
    row[static_cast<size_t>(at)] = 1;
    return row;
  }
  const int64_t tokens = std::ssize(grid.tokens);
  std::fill(row.begin() + tokens, row.end(), 1 / static_cast<double>(grid.cells() - tokens));
  return row;
}

std::vector<float> roll_out(const ImageSubject& subject, const std::vector<size_t>& calls,
                            const std::vector<FusedHeads>& fused, const std::vector<int64_t>& rows,
                            std::vector<float> FusedHeads::*matrix) {
  const auto grid_of = [&](size_t call) { return subject.grids()[subject.calls()[call].queries]; };
  std::vector<std::vector<AttentionWindow>> windows;
  for (const size_t c : calls) windows.push_back(windows_of(subject, subject.calls()[c]));
  const int64_t width = grid_of(calls.front()).cells();
  std::vector<float> result(rows.size() * static_cast<size_t>(width));
  parallel_for(std::ssize(rows), [&](int64_t r) {
    CellGrid grid = grid_of(calls.back());
    std::vector<double> row = begun_row(grid, rows[r]);
    for (size_t l = calls.size(); l-- > 0;) {
      const CellGrid& next = grid_of(calls[l]);
      if (next != grid) row = spread(row, grid, next), grid = next;
      row = step_back(row, windows[l], fused[calls[l]].*matrix);
    }
    for (int64_t j = 0; j < width; ++j) result[r * width + j] = static_cast<float>(row[j]);
  });
  return result;
}

// Whole maps where all fit; else rows of tokens, and of each other row the largest weights.
void choose_what_is_kept(const ImageSubject& subject, int64_t most_weights,
                         std::vector<ImageHead>& heads) {
  int64_t all = 0, rows = 0;
  for (const ImageHead& head : heads) {
    const ImageCall& call = subject.calls()[head.call];
    all += weights_of(windows_of(subject, call));
    rows += subject.grids()[call.queries].cells();
  }
  if (all <= most_weights) return;
  for (ImageHead& head : heads) {
    const ImageCall& call = subject.calls()[head.call];  // its windows are of one size
    const int64_t keys = std::ssize(windows_of(subject, call).front().keys);
    head.whole_rows = std::ssize(subject.grids()[call.queries].tokens);
    head.kept = std::min(keys, std::clamp(most_weights / rows, kLeastKept, kMostKept));
  }
}

// Adds the weights of a call to its heads in `heads`, and to `fused` unless that is null.
void gather(const ImageSubject& subject, size_t c, const nn::AttentionCall& seen,
            std::vector<ImageHead>& heads, FusedHeads* fused) {
  const ImageCall& call = subject.calls()[c];
  const std::vector<AttentionWindow> windows = windows_of(subject, call);
  for (int64_t h = 0; h < call.heads; ++h) {
    const auto head =
        std::ranges::find_if(heads, [&](const ImageHead& x) { return x.call == c && x.head == h; });
    if (head == heads.end() && fused == nullptr) continue;
    std::optional<HeadGatherer> gatherer;
    if (head != heads.end()) gatherer.emplace(subject, *head);
    size_t at = 0;
    for (size_t s = 0; s < windows.size(); ++s) {
      const Tensor weights = seen.weights(static_cast<int64_t>(s), h);
      check_finite(std::all_of(weights.data<float>(), weights.data<float>() + weights.elements(),
                               [](float w) { return std::isfinite(w); }),
                   "the attention weights of {}, head {}", call.title, h);
      if (gatherer) gatherer->add(windows[s], weights);
      if (fused != nullptr) fused->add(windows[s], weights, at, call.heads);
      at += static_cast<size_t>(weights.elements());
    }
  }
}

Rollout rollout_of(const ImageSubject& subject, const std::vector<size_t>& rolled,
                   std::vector<FusedHeads>& fused, double discard) {
  for (const size_t c : rolled) {
    discard_least(fused[c].mean, discard);
    discard_least(fused[c].max, discard);
  }
  const ImageCall& last = subject.calls()[rolled.back()];
  Rollout rollout{.mean = {},
                  .max = {},
                  .rows = rolled_rows(subject.grids()[last.queries], !subject.reads_token()),
                  .queries = last.queries,
                  .keys = subject.calls()[rolled.front()].keys,
                  .layers = std::ssize(rolled),
                  .discard = discard};
  rollout.mean = roll_out(subject, rolled, fused, rollout.rows, &FusedHeads::mean);
  rollout.max = roll_out(subject, rolled, fused, rollout.rows, &FusedHeads::max);
  return rollout;
}

}  // namespace

ImageMaps image_maps(const ImageSubject& subject, const ImageHeadsOptions& options) {
  check_discard(options.discard);
  ImageMaps maps{.heads = chosen_heads(subject, options), .rollout = {}};
  choose_what_is_kept(subject, options.most_weights, maps.heads);
  const std::vector<size_t> rolled = rolled_calls(subject);
  check(
      options.discard == 0 || !rolled.empty(), ErrorKind::usage,
      "`discard` is of the roll-out, and there is none: no layer lets the image attend to itself, "
      "or all maps together have more than {} weights",
      kMostHeld);
  std::vector<FusedHeads> fused(subject.calls().size());
  nn::Observer observer;
  observer.attention = [&](const nn::AttentionCall& seen) {
    const auto call = std::ranges::find(subject.calls(), seen.name(), &ImageCall::name);
    if (call == subject.calls().end()) return;
    const auto c = static_cast<size_t>(call - subject.calls().begin());
    const bool is_rolled = std::ranges::find(rolled, c) != rolled.end();
    gather(subject, c, seen, maps.heads, is_rolled ? &fused[c] : nullptr);
  };
  subject.pass(observer);
  if (!rolled.empty()) maps.rollout = rollout_of(subject, rolled, fused, options.discard);
  if (!options.importance) return maps;
  for (ImageHead& head : maps.heads) {
    const ImageCall& call = subject.calls()[head.call];
    head.importance = subject.change(without_head(call.name, head.head, call.heads));
  }
  return maps;
}

}  // namespace heddle::inspect
