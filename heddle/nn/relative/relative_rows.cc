// Memories and orders of tokens; positions of queries and keys, and the ranges of integers by which
// they see each other.
#include "heddle/nn/relative/relative_rows.h"

#include <algorithm>
#include <limits>

#include "heddle/ops/elementwise.h"
#include "heddle/ops/embedding.h"
#include "heddle/ops/shape.h"

namespace heddle::nn {
namespace {

constexpr int32_t kLeast = std::numeric_limits<int32_t>::min();

// The greatest of query position - key position of each segment, where positions count as their
// negatives if `sign` is -1: then its negative is the least.
int32_t extreme(const RelativeRows& rows, int32_t sign) {
  bool is_found = false;
  int32_t most = 0;
  for (int64_t s = 0; s < rows.queries.count(); ++s) {
    int32_t query = kLeast, key = std::numeric_limits<int32_t>::max();
    if (rows.queries.length(s) == 0 || rows.keys.length(s) == 0) continue;
    for (int64_t i = rows.queries.begin(s); i < rows.queries.end(s); ++i) {
      query = std::max(query, sign * rows.query_positions[i]);
    }
    for (int64_t j = rows.keys.begin(s); j < rows.keys.end(s); ++j) {
      key = std::min(key, sign * rows.key_positions[j]);
    }
    most = is_found ? std::max(most, query - key) : query - key;
    is_found = true;
  }
  return most;
}

// The token that query q is, or predicts; -1: none.
int64_t token_of(const OrderRule& rule, int64_t q) {
  return rule.is_of_targets ? rule.order->target_tokens[q] : q;
}

// By steps, which are columns of the text where no others are given.
void see_by_steps(RelativeRows& rows, const Segments& tokens, const OrderRule& rule) {
  const bool has_steps = rule.order != nullptr && !rule.order->steps.empty();
  check(!has_steps || !rule.is_causal, ErrorKind::internal,
        "a causal rule takes the order of the text, no steps");
  for (int64_t s = 0; s < tokens.count(); ++s) {
    const auto step_of = [&](int64_t token) {
      return has_steps ? rule.order->steps[token] : static_cast<int32_t>(token - tokens.begin(s));
    };
    const int64_t before = rows.keys.length(s) - tokens.length(s);
    for (int64_t j = -before; j < 0; ++j) {
      rows.visibility.order.push_back(has_steps ? kLeast : static_cast<int32_t>(j));
    }
    for (int64_t i = tokens.begin(s); i < tokens.end(s); ++i)
      rows.visibility.order.push_back(step_of(i));
    for (int64_t q = rows.queries.begin(s); q < rows.queries.end(s); ++q) {
      const int64_t token = token_of(rule, q);
      if (token < 0) {  // sees nothing
        rows.visibility.first.push_back(0), rows.visibility.limit.push_back(0);
        continue;
      }
      const int32_t step = step_of(token);
      // In the text's order a token's prediction sees the token itself, as in transformers.
      rows.visibility.limit.push_back(rule.is_of_targets && has_steps ? step : step + 1);
      const bool is_windowed = rule.is_causal && rule.is_windowed;
      rows.visibility.first.push_back(is_windowed ? step - static_cast<int32_t>(before) : kLeast);
    }
  }
}

// By the order's mask, to which a causal rule adds its own.
void see_by_mask(RelativeRows& rows, const Segments& tokens, const OrderRule& rule) {
  const auto is_hidden = [&](int64_t n, int64_t before, int64_t at, int64_t i, int64_t j) {
    if (i == j && !rule.is_of_targets) return false;
    const bool is_far = rule.is_causal && (j > i || (rule.is_windowed && j < i - before));
    return is_far || (j >= 0 && rule.order->hidden[at + i * n + j] != 0);
  };
  rows.visibility.order.assign(rows.keys.rows(), 0);
  rows.visibility.first.assign(rows.queries.rows(), 0);
  rows.visibility.limit.assign(rows.queries.rows(), 1);
  for (int64_t s = 0, at = 0; s < tokens.count(); ++s) {
    const int64_t n = tokens.length(s), before = rows.keys.length(s) - n;
    for (int64_t q = rows.queries.begin(s); q < rows.queries.end(s); ++q) {
      const int64_t token = token_of(rule, q);
      if (token < 0) rows.visibility.limit[q] = 0;  // sees nothing
      for (int64_t j = -before; j < n; ++j) {
        const int64_t i = token - tokens.begin(s);
        rows.hidden.push_back(token >= 0 && is_hidden(n, before, at, i, j) ? 1 : 0);
      }
    }
    at += n * n;
  }
}

}  // namespace

Memory Memory::before(const Memory* given, const Segments& tokens, int64_t n, int64_t layers,
                      int64_t width, DType dtype) {
  if (given == nullptr || given->layers.empty()) {
    const Tensor x = Tensor::zeros({tokens.count() * n, width}, dtype);  // never written to
    return {Segments::uniform(tokens.count(), n), std::vector<Tensor>(layers, x)};
  }
  const auto held = static_cast<int64_t>(given->layers.size());
  check(given->segments.count() == tokens.count() && held == layers, ErrorKind::shape,
        "the memory is of {} sequences and {} layers; {} and {} are needed",
        given->segments.count(), held, tokens.count(), layers);
  Memory memory = *given;
  for (Tensor& layer : memory.layers) layer = cast(layer, dtype);
  return memory;
}

Memory Memory::next(const std::vector<Tensor>& x, const Segments& tokens, const Keep& keep) const {
  const NoGrad off;
  std::vector<int64_t> lengths;
  std::vector<int32_t> rows;  // of kept and new ones, sequence by sequence
  for (int64_t i = 0; i < tokens.count(); ++i) {
    const int64_t added =
        keep.reuse > 0 ? std::min(keep.reuse, tokens.length(i)) : tokens.length(i);
    const int64_t end = segments.end(i) + tokens.begin(i) + added;
    const int64_t n = std::min(keep.most, segments.length(i) + added);
    for (int64_t r = end - n; r < end; ++r) rows.push_back(static_cast<int32_t>(r));
    lengths.push_back(n);
  }
  Memory result{Segments::from_lengths(lengths), {}};
  for (size_t i = 0; i < x.size(); ++i) {
    const Tensor all = join_segments(layers[i].detached(), segments, x[i].detached(), tokens);
    result.layers.push_back(gather_rows(all, rows));
  }
  return result;
}

void TokenOrder::check(const Segments& tokens) const {
  const auto rows = static_cast<size_t>(tokens.rows());
  int64_t pairs = 0;
  for (int64_t s = 0; s < tokens.count(); ++s) {
    pairs += tokens.length(s) * tokens.length(s);
  }
  heddle::check(steps.empty() || steps.size() == rows, ErrorKind::shape,
                "there are {} steps for {} tokens", steps.size(), rows);
  heddle::check(hidden.empty() || (steps.empty() && hidden.size() == static_cast<size_t>(pairs)),
                ErrorKind::shape,
                "the mask has {} values and {} steps beside it; it needs {} and none",
                hidden.size(), steps.size(), pairs);
  heddle::check(
      targets.count() == 0 || (targets.count() == tokens.count() &&
                               targets.rows() == static_cast<int64_t>(target_tokens.size())),
      ErrorKind::shape, "there are {} predictions for {} sequences and {} for {}", targets.rows(),
      targets.count(), target_tokens.size(), tokens.count());
  for (int64_t s = 0; s < targets.count(); ++s) {
    for (int64_t t = targets.begin(s); t < targets.end(s); ++t) {
      const int32_t token = target_tokens[t];
      heddle::check(token == -1 || (token >= tokens.begin(s) && token < tokens.end(s)),
                    ErrorKind::shape, "prediction {} is of token {}, which is not in sequence {}",
                    t, token, s);
    }
  }
}

RelativeRows rows_behind(const Segments& memory, const TokenRows& tokens) {
  RelativeRows rows;
  rows.queries = *tokens.segments;
  rows.query_positions = tokens.positions();
  rows.query_types.assign(tokens.types.begin(), tokens.types.end());
  const auto add = [&](std::vector<int32_t>& keys, const std::vector<int32_t>& all, int64_t s) {
    keys.insert(keys.end(), all.begin() + rows.queries.begin(s), all.begin() + rows.queries.end(s));
  };
  std::vector<int64_t> lengths;
  for (int64_t s = 0; s < rows.queries.count(); ++s) {
    const int64_t n = memory.length(s);
    for (int64_t i = -n; i < 0; ++i) rows.key_positions.push_back(static_cast<int32_t>(i));
    add(rows.key_positions, rows.query_positions, s);
    if (!rows.query_types.empty()) {
      rows.key_types.resize(rows.key_types.size() + n, 0);
      add(rows.key_types, rows.query_types, s);
    }
    lengths.push_back(n + rows.queries.length(s));
  }
  rows.keys = Segments::from_lengths(lengths);
  return rows;
}

RelativeRows rows_of_cache(const KvCache& cache, int64_t most, std::vector<int32_t>& cache_rows) {
  const CachedKeys cached = cache.keys();
  RelativeRows rows;
  rows.queries = *cached.queries;
  rows.query_positions.assign(cached.position_ids.begin(), cached.position_ids.end());
  std::vector<int64_t> lengths;
  for (int64_t s = 0; s < cached.keys->count(); ++s) {
    const int64_t all = cached.keys->length(s), before = all - cached.queries->length(s);
    const int64_t seen = most > 0 ? most : before;
    for (int64_t position = before - seen; position < all; ++position) {
      rows.key_positions.push_back(static_cast<int32_t>(position));
      cache_rows.push_back(position < 0 ? -1 : cached.key_rows[cached.keys->begin(s) + position]);
    }
    lengths.push_back(seen + all - before);
  }
  rows.keys = Segments::from_lengths(lengths);
  return rows;
}

RelativeRows rows_of_targets(const RelativeRows& tokens, const TokenOrder& order) {
  RelativeRows rows = tokens;
  rows.queries = order.targets;
  rows.query_positions.clear();
  rows.query_types.clear();
  const bool has_types = !tokens.query_types.empty();
  for (const int32_t token : order.target_tokens) {
    rows.query_positions.push_back(token < 0 ? 0 : tokens.query_positions[token]);
    if (has_types) rows.query_types.push_back(token < 0 ? 0 : tokens.query_types[token]);
  }
  return rows;
}

void run_backwards(RelativeRows& rows, int64_t first) {
  if (first >= rows.queries.count()) return;
  for (int64_t i = rows.queries.begin(first); i < rows.queries.rows(); ++i) {
    rows.query_positions[i] *= -1;
  }
  for (int64_t j = rows.keys.begin(first); j < rows.keys.rows(); ++j) rows.key_positions[j] *= -1;
}

int32_t farthest(const RelativeRows& rows) { return extreme(rows, 1); }
int32_t nearest(const RelativeRows& rows) { return -extreme(rows, -1); }

void see_back(RelativeRows& rows, int64_t window) {
  rows.visibility.order = rows.key_positions;
  for (const int32_t position : rows.query_positions) {
    rows.visibility.limit.push_back(position + 1);
    rows.visibility.first.push_back(window > 0 ? static_cast<int32_t>(position + 1 - window)
                                               : kLeast);
  }
}

void see_in_order(RelativeRows& rows, const Segments& tokens, const OrderRule& rule) {
  const TokenOrder* order = rule.order;
  if (order != nullptr && !order->hidden.empty()) {
    see_by_mask(rows, tokens, rule);
  } else if (rule.is_causal || (order != nullptr && !order->steps.empty())) {
    see_by_steps(rows, tokens, rule);
  }
}

}  // namespace heddle::nn
