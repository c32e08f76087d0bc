// Places of queries and keys, and the ranges of integers by which they see each other.
#include "heddle/nn/relative_rows.h"

#include <algorithm>
#include <limits>

namespace heddle::nn {
namespace {

constexpr int32_t kLeast = std::numeric_limits<int32_t>::min();

// The greatest of query place - key place of each segment, where places count as their negatives if
// `sign` is -1: then its negative is the least.
int32_t extreme(const RelativeRows& rows, int32_t sign) {
  bool is_found = false;
  int32_t most = 0;
  for (int64_t s = 0; s < rows.queries.count(); ++s) {
    int32_t query = kLeast, key = std::numeric_limits<int32_t>::max();
    if (rows.queries.length(s) == 0 || rows.keys.length(s) == 0) continue;
    for (int64_t i = rows.queries.begin(s); i < rows.queries.end(s); ++i) {
      query = std::max(query, sign * rows.query_places[i]);
    }
    for (int64_t j = rows.keys.begin(s); j < rows.keys.end(s); ++j) {
      key = std::min(key, sign * rows.key_places[j]);
    }
    most = is_found ? std::max(most, query - key) : query - key;
    is_found = true;
  }
  return most;
}

// The word that query q is, or predicts; -1: none.
int64_t word_of(const OrderRule& rule, int64_t q) {
  return rule.is_of_targets ? rule.order->target_words[q] : q;
}

// By steps, which are columns of the text where no others are given.
void see_by_steps(RelativeRows& rows, const Segments& words, const OrderRule& rule) {
  const bool has_steps = rule.order != nullptr && !rule.order->steps.empty();
  check(!has_steps || !rule.is_causal, ErrorKind::internal,
        "a causal rule takes the order of the text, no steps");
  for (int64_t s = 0; s < words.count(); ++s) {
    const auto step_of = [&](int64_t word) {
      return has_steps ? rule.order->steps[word] : static_cast<int32_t>(word - words.begin(s));
    };
    const int64_t before = rows.keys.length(s) - words.length(s);
    for (int64_t j = -before; j < 0; ++j) {
      rows.order.push_back(has_steps ? kLeast : static_cast<int32_t>(j));
    }
    for (int64_t i = words.begin(s); i < words.end(s); ++i) rows.order.push_back(step_of(i));
    for (int64_t q = rows.queries.begin(s); q < rows.queries.end(s); ++q) {
      const int64_t word = word_of(rule, q);
      if (word < 0) {  // sees nothing
        rows.first.push_back(0), rows.limit.push_back(0);
        continue;
      }
      const int32_t step = step_of(word);
      // In the text's order a word's prediction sees the word itself, as in transformers.
      rows.limit.push_back(rule.is_of_targets && has_steps ? step : step + 1);
      const bool is_windowed = rule.is_causal && rule.is_windowed;
      rows.first.push_back(is_windowed ? step - static_cast<int32_t>(before) : kLeast);
    }
  }
}

// By the order's mask, to which a causal rule adds its own.
void see_by_mask(RelativeRows& rows, const Segments& words, const OrderRule& rule) {
  const auto is_hidden = [&](int64_t n, int64_t before, int64_t at, int64_t i, int64_t j) {
    if (i == j && !rule.is_of_targets) return false;
    const bool is_far = rule.is_causal && (j > i || (rule.is_windowed && j < i - before));
    return is_far || (j >= 0 && rule.order->hidden[at + i * n + j] != 0);
  };
  rows.order.assign(rows.keys.rows(), 0);
  rows.first.assign(rows.queries.rows(), 0);
  rows.limit.assign(rows.queries.rows(), 1);
  for (int64_t s = 0, at = 0; s < words.count(); ++s) {
    const int64_t n = words.length(s), before = rows.keys.length(s) - n;
    for (int64_t q = rows.queries.begin(s); q < rows.queries.end(s); ++q) {
      const int64_t word = word_of(rule, q);
      if (word < 0) rows.limit[q] = 0;  // sees nothing
      for (int64_t j = -before; j < n; ++j) {
        const int64_t i = word - words.begin(s);
        rows.hidden.push_back(word >= 0 && is_hidden(n, before, at, i, j) ? 1 : 0);
      }
    }
    at += n * n;
  }
}

}  // namespace

RelativeRows rows_behind(const Segments& memory, const WordRows& words) {
  RelativeRows rows;
  rows.queries = *words.segments;
  rows.query_places = words.positions();
  rows.query_types.assign(words.types.begin(), words.types.end());
  const auto add = [&](std::vector<int32_t>& keys, const std::vector<int32_t>& all, int64_t s) {
    keys.insert(keys.end(), all.begin() + rows.queries.begin(s), all.begin() + rows.queries.end(s));
  };
  std::vector<int64_t> lengths;
  for (int64_t s = 0; s < rows.queries.count(); ++s) {
    const int64_t n = memory.length(s);
    for (int64_t i = -n; i < 0; ++i) rows.key_places.push_back(static_cast<int32_t>(i));
    add(rows.key_places, rows.query_places, s);
    if (!rows.query_types.empty()) {
      rows.key_types.resize(rows.key_types.size() + n, 0);
      add(rows.key_types, rows.query_types, s);
    }
    lengths.push_back(n + rows.queries.length(s));
  }
  rows.keys = Segments::from_lengths(lengths);
  return rows;
}

RelativeRows rows_of_cache(const WordCache& cache, int64_t most, std::vector<int32_t>& cache_rows) {
  const CachedKeys cached = cache.keys();
  RelativeRows rows;
  rows.queries = *cached.queries;
  rows.query_places.assign(cached.places.begin(), cached.places.end());
  std::vector<int64_t> lengths;
  for (int64_t s = 0; s < cached.keys->count(); ++s) {
    const int64_t all = cached.keys->length(s), before = all - cached.queries->length(s);
    const int64_t seen = most > 0 ? most : before;
    for (int64_t place = before - seen; place < all; ++place) {
      rows.key_places.push_back(static_cast<int32_t>(place));
      cache_rows.push_back(place < 0 ? -1 : cached.key_rows[cached.keys->begin(s) + place]);
    }
    lengths.push_back(seen + all - before);
  }
  rows.keys = Segments::from_lengths(lengths);
  return rows;
}

RelativeRows rows_of_targets(const RelativeRows& words, const WordOrder& order) {
  RelativeRows rows = words;
  rows.queries = order.targets;
  rows.query_places.clear();
  rows.query_types.clear();
  const bool has_types = !words.query_types.empty();
  for (const int32_t word : order.target_words) {
    rows.query_places.push_back(word < 0 ? 0 : words.query_places[word]);
    if (has_types) rows.query_types.push_back(word < 0 ? 0 : words.query_types[word]);
  }
  return rows;
}

void run_backwards(RelativeRows& rows, int64_t first) {
  if (first >= rows.queries.count()) return;
  for (int64_t i = rows.queries.begin(first); i < rows.queries.rows(); ++i) {
    rows.query_places[i] *= -1;
  }
  for (int64_t j = rows.keys.begin(first); j < rows.keys.rows(); ++j) rows.key_places[j] *= -1;
}

int32_t farthest(const RelativeRows& rows) { return extreme(rows, 1); }
int32_t nearest(const RelativeRows& rows) { return -extreme(rows, -1); }

void see_back(RelativeRows& rows, int64_t window) {
  rows.order = rows.key_places;
  for (const int32_t place : rows.query_places) {
    rows.limit.push_back(place + 1);
    rows.first.push_back(window > 0 ? static_cast<int32_t>(place + 1 - window) : kLeast);
  }
}

void see_in_order(RelativeRows& rows, const Segments& words, const OrderRule& rule) {
  const WordOrder* order = rule.order;
  if (order != nullptr && !order->hidden.empty()) {
    see_by_mask(rows, words, rule);
  } else if (rule.is_causal || (order != nullptr && !order->steps.empty())) {
    see_by_steps(rows, words, rule);
  }
}

}  // namespace heddle::nn
