// Attention: the work items and their grouping, shared by the forward and the backward pass.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "heddle/base/parallel.h"
#include "heddle/kernels/attention.h"
#include "heddle/kernels/cpu/scratch.h"

namespace heddle::cpu {

/// attention_backward.cc
void attention_backward(const AttentionBackwardArgs& args);

/// Keys in a tile. Tiles start at the segment's first key: sums are in the order of tiles, so the
/// size is part of the result's bits.
inline constexpr int64_t kKeyTile = 64;
/// Queries of an item of the forward pass, and of a step of the backward pass; free to change.
inline constexpr int64_t kForwardQueries = 128;
inline constexpr int64_t kBackwardQueries = 64;
/// Rows that go through a product together.
inline constexpr int64_t kRowBlock = 8;

/// One head of one segment: queries [q_begin, q_end) and keys [k_begin, k_end), from its start.
struct AttentionItem {
  int64_t segment = 0;
  int64_t head = 0;
  int64_t q_begin = 0, q_end = 0;
  int64_t k_begin = 0, k_end = 0;
  bool wants_dq = false;   ///< backward: write dq of the queries
  bool wants_dkv = false;  ///< backward: write dk and dv of the keys
};

/// Some neighbouring queries or keys of a segment.
struct Range {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
  /// At most `most` of it from `first` on.
  Range part(int64_t first, int64_t most) const { return {first, std::min(first + most, end)}; }
};

/// Bounds of the orders of some keys.
struct Orders {
  int32_t least, most;
};

/// Bounds of the ranges of some queries.
struct Sight {
  int32_t least_first, most_first, least_limit, most_limit;

  bool misses(const Orders& keys) const {
    return keys.most < least_first || keys.least >= most_limit;
  }
  /// Whether each of the queries sees each of the keys.
  bool holds(const Orders& keys) const {
    return keys.least >= most_first && keys.most < least_limit;
  }
};

/// Sizes of one segment, and who sees whom in it.
struct SegmentSizes {
  int64_t q_first, k_first;  ///< rows where it starts
  int64_t queries, keys;
  bool causal;       ///< if there are no ranges
  KeyRanges ranges;  ///< of the segment

  SegmentSizes(const AttentionArgs& args, int64_t segment)
      : q_first(args.q_offsets[segment]),
        k_first(args.k_offsets[segment]),
        queries(args.q_offsets[segment + 1] - q_first),
        keys(args.k_offsets[segment + 1] - k_first),
        causal(args.causal),
        ranges(args.ranges) {
    if (ranges.limit) ranges.first += q_first, ranges.limit += q_first;
    if (ranges.order) ranges.order += k_first;
  }
  bool has_ranges() const { return ranges.limit != nullptr; }

  /// The orders that a query sees: [first(i), limit(i)).
  int32_t first(int64_t query) const { return has_ranges() ? ranges.first[query] : 0; }
  int32_t limit(int64_t query) const {
    if (has_ranges()) return ranges.limit[query];
    const int64_t end = causal ? std::clamp<int64_t>(query + 1 + keys - queries, 0, keys) : keys;
    return static_cast<int32_t>(end);
  }
  /// Of queries [begin, end), which are not none.
  Sight sight(int64_t begin, int64_t end) const {
    Sight s{first(begin), first(end - 1), limit(begin), limit(end - 1)};
    if (!has_ranges()) return s;
    s.most_first = s.least_first, s.most_limit = s.least_limit;
    for (int64_t i = begin; i < end; ++i) {
      s.least_first = std::min(s.least_first, ranges.first[i]);
      s.most_first = std::max(s.most_first, ranges.first[i]);
      s.least_limit = std::min(s.least_limit, ranges.limit[i]);
      s.most_limit = std::max(s.most_limit, ranges.limit[i]);
    }
    return s;
  }

  int32_t order(int64_t key) const {
    return ranges.order ? ranges.order[key] : static_cast<int32_t>(key);
  }
  /// Of keys [begin, end), which are not none.
  Orders orders(int64_t begin, int64_t end) const {
    Orders o{order(begin), order(end - 1)};
    if (!ranges.order) return o;
    o.most = o.least;
    for (int64_t i = begin; i < end; ++i) {
      o.least = std::min(o.least, ranges.order[i]);
      o.most = std::max(o.most, ranges.order[i]);
    }
    return o;
  }
  /// to[i] = order(begin + i), up to `padded` such that no query sees what is not there.
  void copy_orders(int64_t begin, int64_t count, int64_t padded, int32_t* to) const {
    if (ranges.order) {
      std::copy_n(ranges.order + begin, count, to);
    } else {
      std::iota(to, to + count, static_cast<int32_t>(begin));
    }
    std::fill(to + count, to + padded, std::numeric_limits<int32_t>::max());
  }

  /// Keys outside which queries [begin, end) see nothing, from the start of a tile on.
  Range keys_of(int64_t begin, int64_t end) const {
    if (ranges.order) return {0, keys};
    const Sight s = sight(begin, end);
    const int64_t last = std::clamp<int64_t>(s.most_limit, 0, keys);
    return {std::clamp<int64_t>(s.least_first, 0, last) / kKeyTile * kKeyTile, last};
  }
  /// How many of `count` keys from `tile` on, whose orders these are, queries may see: the rest
  /// they do not; 0: none.
  int64_t seen(const Sight& s, const Orders& orders, int64_t tile, int64_t count) const {
    if (s.misses(orders)) return 0;
    return ranges.order ? count : std::min<int64_t>(count, s.most_limit - tile);
  }
  /// Queries of `all` outside which none sees a key of these orders.
  Range queries_of(const Orders& keys_orders, Range all) const {
    if (!has_ranges())
      return {std::clamp(first_query(keys_orders.least), all.begin, all.end), all.end};
    constexpr int64_t kStep = 64;
    while (all.size() > 0 &&
           sight(all.begin, std::min(all.begin + kStep, all.end)).misses(keys_orders)) {
      all.begin = std::min(all.begin + kStep, all.end);
    }
    while (all.size() > 0 &&
           sight(std::max(all.end - kStep, all.begin), all.end).misses(keys_orders)) {
      all.end = std::max(all.end - kStep, all.begin);
    }
    return all;
  }
  /// Where a query stands among the keys: the last of both stand together.
  int64_t position(int64_t query) const { return query + keys - queries; }
  /// Without ranges: the first query that sees the key, at most `queries`.
  int64_t first_query(int64_t key) const {
    return causal ? std::clamp<int64_t>(key - keys + queries, 0, queries) : 0;
  }
};

/// Where the keys and values of a head begin: several heads share them if k is narrower than q.
inline int64_t key_column(const AttentionArgs& args, int64_t head) {
  return head / (args.heads * args.head_dim / args.k.width) * args.head_dim;
}

/// An item, the sizes of its segment, and where its head stands.
struct HeadItem {
  const AttentionItem& item;
  const SegmentSizes sizes;
  const int64_t column;  ///< where the head starts
  const int64_t shared;  ///< where its keys and values do

  HeadItem(const AttentionArgs& args, const AttentionItem& i)
      : item(i),
        sizes(args, i.segment),
        column(i.head * args.head_dim),
        shared(key_column(args, i.head)) {}
};

/// Items that a thread takes at a time.
struct ItemGroup {
  const AttentionItem *first, *last;  ///< [first, last)
  const AttentionItem* next;          ///< of the next group the first; null if there is none
  int64_t number;

  const AttentionItem* begin() const { return first; }
  const AttentionItem* end() const { return last; }
  /// What a thread most likely takes behind one of these; null if there is nothing.
  const AttentionItem* after(const AttentionItem& item) const {
    return &item + 1 == last ? next : &item + 1;
  }
  /// The same behind all items of this one's segment.
  const AttentionItem* after_segment(const AttentionItem& item) const {
    const AttentionItem* behind = &item;
    while (behind != last && behind->segment == item.segment) ++behind;
    return behind == last ? next : behind;
  }
};

/// Items in groups of about equal work: a thread takes a group at a time.
class AttentionPlan {
 public:
  /// Forgets the items; memory is kept for the next call.
  void clear(double group_work) {
    group_work_ = group_work;
    items_.clear();
    groups_.clear();
  }
  /// Adds an item; `work` in multiplications.
  void add(const AttentionItem& item, double work) {
    if (groups_.empty() || groups_.back().work + work > group_work_) {
      groups_.push_back({items_.size(), items_.size(), 0, groups()});
    }
    items_.push_back(item);
    groups_.back().end = items_.size();
    groups_.back().work += work;
  }
  int64_t groups() const { return static_cast<int64_t>(groups_.size()); }
  /// Calls f(ItemGroup) for each group, on all threads, the largest groups first.
  template <class F>
  void run(const F& f) {
    std::sort(groups_.begin(), groups_.end(),
              [](const Group& a, const Group& b) { return a.work > b.work; });
    parallel_for(groups(), [&](int64_t g) {
      const auto at = static_cast<size_t>(g);
      const AttentionItem* const items = items_.data();
      f(ItemGroup{items + groups_[at].begin, items + groups_[at].end,
                  at + 1 < groups_.size() ? items + groups_[at + 1].begin : nullptr,
                  groups_[at].number});
    });
  }

 private:
  struct Group {
    size_t begin, end;
    double work;
    int64_t number;
  };
  double group_work_ = 0;
  std::vector<AttentionItem> items_;
  std::vector<Group> groups_;
};

/// Multiplications of a group: about 20 us, well above what a fork costs.
inline constexpr double kVectorGroupWork = 1e6;  ///< in f32
inline constexpr double kTileGroupWork = 4e6;    ///< in bf16 on a matrix unit

/// The calling thread's own plan, its memory kept between calls.
inline AttentionPlan& attention_plan(double group_work) {
  thread_local AttentionPlan plan;
  plan.clear(group_work);
  return plan;
}

/// What an item costs beside its products, as if it had so many more queries and keys.
struct ItemCost {
  int64_t queries, keys;
};

/// Adds the items of the forward pass: each head of each segment, `most` queries at a time.
inline void plan_forward(AttentionPlan& plan, const AttentionArgs& args, int64_t most,
                         const ItemCost& cost) {
  for (int64_t segment = 0; segment < args.segments; ++segment) {
    const SegmentSizes sizes(args, segment);
    for (int64_t head = 0; head < args.heads; ++head) {
      for (int64_t begin = 0; begin < sizes.queries; begin += most) {
        const int64_t end = std::min(begin + most, sizes.queries);
        const Range keys = sizes.keys_of(begin, end);
        const int64_t products = (end - begin + cost.queries) * (keys.size() + cost.keys);
        plan.add({segment, head, begin, end, keys.begin, keys.end},
                 static_cast<double>(products * args.head_dim * 2));
      }
    }
  }
}

/// How the backward pass cuts a head: so many queries, or keys, an item, which begin at multiples
/// of the steps.
struct BackwardCut {
  int64_t queries, keys;
  int64_t query_step, key_step;
  ItemCost cost;
};

/// Adds the items of the backward pass: a head's gradients at once, where at_once(sizes) says so,
/// or those of its queries and of its keys apart.
template <class F>
void plan_backward(AttentionPlan& plan, const AttentionArgs& args, const BackwardCut& cut,
                   const F& at_once) {
  const auto work = [&](const Range& queries, const Range& keys, int64_t products) {
    const int64_t pairs = (queries.size() + cut.cost.queries) * (keys.size() + cut.cost.keys);
    return static_cast<double>(pairs * args.head_dim * products);
  };
  const auto from_step = [](Range r, int64_t step) { return Range{r.begin / step * step, r.end}; };
  for (int64_t i = 0; i < args.segments * args.heads; ++i) {
    const int64_t segment = i / args.heads, head = i % args.heads;
    const SegmentSizes sizes(args, segment);
    const Range all_queries{0, sizes.queries}, all_keys{0, sizes.keys};
    if (sizes.queries == 0 && sizes.keys == 0) continue;
    if (at_once(sizes)) {
      plan.add({segment, head, 0, sizes.queries, 0, sizes.keys, true, true},
               work(all_queries, all_keys, 5));
      continue;
    }
    for (int64_t begin = 0; begin < sizes.queries; begin += cut.queries) {
      const Range q = all_queries.part(begin, cut.queries);
      const Range k = from_step(sizes.keys_of(q.begin, q.end), cut.key_step);
      plan.add({segment, head, q.begin, q.end, k.begin, k.end, true, false}, work(q, k, 3));
    }
    for (int64_t begin = 0; begin < sizes.keys; begin += cut.keys) {
      const Range k = all_keys.part(begin, cut.keys);
      const Range q =
          from_step(sizes.queries_of(sizes.orders(k.begin, k.end), all_queries), cut.query_step);
      plan.add({segment, head, q.begin, q.end, k.begin, k.end, false, true}, work(q, k, 4));
    }
  }
}

/// Hands out 64-byte aligned parts of the calling thread's memory. Integers lie apart: read as
/// floats they are denormal, and what a product's last columns multiply by is what is left there.
class AttentionScratch {
 public:
  AttentionScratch(int64_t floats, int64_t integers)
      : floats_(aligned(scratch<float, 7>(floats + 16 * kMostParts))),
        integers_(aligned(scratch<int32_t, 7>(integers + 16 * kMostParts))) {}
  float* take(int64_t n) { return take_from(floats_, n); }
  int32_t* take_integers(int64_t n) { return take_from(integers_, n); }

 private:
  static constexpr int64_t kMostParts = 16;

  template <class T>
  static T* aligned(T* memory) {
    return reinterpret_cast<T*>((reinterpret_cast<uintptr_t>(memory) + 63) & ~uintptr_t{63});
  }
  template <class T>
  static T* take_from(T*& next, int64_t n) {
    return std::exchange(next, next + ((n + 15) & ~int64_t{15}));
  }

  float* floats_;
  int32_t* integers_;
};

}  // namespace heddle::cpu
