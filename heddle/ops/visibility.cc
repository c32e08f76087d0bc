// Ranges of keys for causal attention and windows.
#include "heddle/ops/visibility.h"

#include <algorithm>

#include "heddle/base/error.h"
#include "heddle/kernels/attention.h"

namespace heddle {
namespace {

void check_count(const char* what, size_t given, int64_t needed) {
  check(static_cast<int64_t>(given) == needed, ErrorKind::shape, "attention: {} {} for {} rows",
        given, what, needed);
}

}  // namespace

void Visibility::check_sizes(int64_t query_rows, int64_t key_rows) const {
  if (is_all()) return;
  check_count("firsts", first.size(), query_rows);
  check_count("limits", limit.size(), query_rows);
  if (!order.empty()) check_count("orders", order.size(), key_rows);
}

Visibility visibility_of(const Segments& queries, const Segments& keys, bool is_causal) {
  Visibility v;
  for (int64_t s = 0; s < queries.count(); ++s) {
    const int64_t n = queries.length(s), m = keys.length(s);
    for (int64_t i = 0; i < n; ++i) {
      const int64_t end = is_causal ? std::clamp<int64_t>(i + 1 + m - n, 0, m) : m;
      v.first.push_back(0);
      v.limit.push_back(static_cast<int32_t>(end));
    }
  }
  return v;
}

void keep_window(Visibility& v, const Segments& queries, const Segments& keys,
                 std::span<const int32_t> query_positions, std::span<const int32_t> key_positions,
                 int64_t window) {
  check_count("query positions", query_positions.size(), queries.rows());
  check_count("key positions", key_positions.size(), keys.rows());
  for (int64_t s = 0; s < queries.count(); ++s) {
    int32_t key = 0;
    for (int64_t i = queries.begin(s); i < queries.end(s); ++i) {
      while (key < v.limit[i] &&
             query_positions[i] - key_positions[keys.begin(s) + key] >= window) {
        ++key;
      }
      v.first[i] = std::max(v.first[i], key);
      v.limit[i] = std::max(v.limit[i], v.first[i]);
    }
  }
}

void hide_keys(Visibility& v, const Segments& keys, std::span<const uint8_t> unseen) {
  check_count("marks of unseen keys", unseen.size(), keys.rows());
  v.order = keys.positions();
  for (size_t j = 0; j < unseen.size(); ++j) {
    if (unseen[j] != 0) v.order[j] = Visibility::kUnseen;
  }
}

int64_t visible_pairs(const Segments& queries, const Segments& keys, bool is_causal,
                      const Visibility* visibility) {
  AttentionArgs args{.q_offsets = queries.offsets().data(),
                     .k_offsets = keys.offsets().data(),
                     .segments = queries.count(),
                     .causal = is_causal && visibility == nullptr};
  if (visibility != nullptr && !visibility->is_all()) {
    const bool is_ordered = !visibility->order.empty();
    args.ranges = {visibility->first.data(), visibility->limit.data(),
                   is_ordered ? visibility->order.data() : nullptr};
  }
  return visible_pairs(args);
}

}  // namespace heddle
