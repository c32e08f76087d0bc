// Definitions of ops in double, in plain loops: what their cases are checked against.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>

#include "heddle/ops/attention.h"
#include "heddle/ops/relative_attention.h"
#include "tests/support/op_case.h"

namespace heddle::definition {

using Inputs = std::vector<std::vector<float>>;
using Doubles = std::vector<double>;

/// A matrix of an input: element (r, c) of rows of `width`.
struct Matrix {
  const std::vector<float>& values;
  int64_t width;
  double operator()(int64_t r, int64_t c) const { return values[r * width + c]; }
};

/// y[i] = f(inputs, i), as many as the first input has.
inline auto each(const std::function<double(const Inputs&, size_t)>& f) {
  return [f](const Inputs& in) {
    Doubles y;
    for (size_t i = 0; i < in[0].size(); ++i) y.push_back(f(in, i));
    return y;
  };
}

/// y[i] = input `from(i).first`, element `from(i).second`: what moves values only.
inline auto moved(int64_t count, const std::function<std::pair<int64_t, int64_t>(int64_t)>& from) {
  return [=](const Inputs& in) {
    Doubles y;
    for (int64_t i = 0; i < count; ++i) {
      const auto [input, element] = from(i);
      y.push_back(in[input][element]);
    }
    return y;
  };
}

/// To the nearest number of 8 significant bits, ties to even.
inline double rounded_to_bf16(double x) {
  int exponent = 0;
  const double m = std::frexp(x, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(m, 8)), exponent - 8);
}

/// softmax in place.
inline void softmax(Doubles& x) {
  const double largest = *std::max_element(x.begin(), x.end());
  double sum = 0;
  for (double& v : x) sum += v = std::exp(v - largest);
  for (double& v : x) v /= sum;
}

/// The row r of `width` as doubles.
inline Doubles row(const std::vector<float>& x, int64_t r, int64_t width) {
  return {x.begin() + r * width, x.begin() + (r + 1) * width};
}

/// Mean and 1 / sqrt(variance + eps) of a row.
inline std::pair<double, double> mean_and_rstd(const Doubles& x, double eps) {
  double mean = 0, square = 0;
  for (const double v : x) mean += v / static_cast<double>(x.size());
  for (const double v : x) square += (v - mean) * (v - mean) / static_cast<double>(x.size());
  return {mean, 1 / std::sqrt(square + eps)};
}

/// Cross entropy with label smoothing s and, over two halves of rows, the divergence a of R-Drop:
/// the sum of the rows' losses, times `scale`.
inline double soft_cross_entropy(const std::vector<float>& logits, int64_t classes,
                                 const std::vector<float>& shares, double scale) {
  double total = 0;
  for (int64_t r = 0; r < std::ssize(logits) / classes; ++r) {
    Doubles p = row(logits, r, classes);
    softmax(p);
    for (int64_t c = 0; c < classes; ++c) total -= shares[r * classes + c] * std::log(p[c]);
  }
  return total * scale;
}

inline double cross_entropy(const std::vector<float>& logits, int64_t vocab,
                            std::span<const int32_t> targets, double s, double a, double scale) {
  const auto rows = static_cast<int64_t>(targets.size());
  const auto log_p = [&](int64_t r) {
    Doubles x = row(logits, r, vocab), p = x;
    softmax(p);
    for (double& v : p) v = std::log(v);
    return p;
  };
  double total = 0;
  for (int64_t r = 0; r < rows; ++r) {
    if (targets[r] < 0) continue;
    const Doubles own = log_p(r);
    total -= (1 - s) * own[targets[r]];
    for (const double v : own) total -= s / static_cast<double>(vocab) * v;
    if (a == 0) continue;
    const Doubles other = log_p((r + rows / 2) % rows);
    for (int64_t c = 0; c < vocab; ++c) {
      total += a / 4 * (std::exp(own[c]) - std::exp(other[c])) * (own[c] - other[c]);
    }
  }
  return total * scale;
}

/// Who attends to what: rows of queries and keys, and how a query of a head sees and scores a key.
/// Rows are those of the whole batch.
struct Attention {
  Segments queries, keys;
  int64_t heads = 1;
  std::function<double(int64_t head, int64_t query, int64_t key)> score;
  std::function<double(int64_t head, int64_t key, int64_t c)> value;  ///< column c of the head
  int64_t value_width = 0;                                            ///< of a head
  /// By rows, and how far back the key is: query i of n sees key j of m over i + m - n - j.
  std::function<bool(int64_t query, int64_t key, int64_t back)> sees;
  /// What dropout multiplies the weight by, of a query (a row) and a key by its index; empty: 1.
  std::function<double(int64_t head, int64_t query, int64_t key)> kept = {};

  Doubles operator()() const {
    Doubles y(queries.rows() * heads * value_width);
    for (int64_t s = 0; s < queries.count(); ++s) {
      const int64_t n = queries.length(s), m = keys.length(s);
      for (int64_t h = 0; h < heads; ++h) {
        for (int64_t i = 0; i < n; ++i) attend(y, s, h, i, n, m);
      }
    }
    return y;
  }

 private:
  void attend(Doubles& y, int64_t s, int64_t h, int64_t i, int64_t n, int64_t m) const {
    const int64_t query = queries.begin(s) + i;
    std::vector<int64_t> seen;
    Doubles weights;
    for (int64_t j = 0; j < m; ++j) {
      if (!sees(query, keys.begin(s) + j, i + m - n - j)) continue;
      seen.push_back(j);
      weights.push_back(score(h, query, keys.begin(s) + j));
    }
    if (seen.empty()) return;
    softmax(weights);
    for (size_t l = 0; l < seen.size(); ++l) {
      const double w = weights[l] * (kept ? kept(h, query, seen[l]) : 1);
      for (int64_t c = 0; c < value_width; ++c) {
        y[(query * heads + h) * value_width + c] += w * value(h, keys.begin(s) + seen[l], c);
      }
    }
  }
};

/// Dot products of matrices q [.., heads * d] and k, v [.., key_heads * d], which may be columns of
/// one input.
struct Columns {
  int input = 0;
  int64_t first = 0, width = 0;  ///< where its columns begin, in rows of this width
  double operator()(const Inputs& in, int64_t r, int64_t c) const {
    return in[input][r * width + first + c];
  }
};
inline auto dot_attention(Columns q, Columns k, Columns v, int64_t d, const Segments& queries,
                          const Segments& keys, const AttentionOptions& o) {
  const int64_t group = o.key_heads > 0 ? o.heads / o.key_heads : 1;
  const std::vector<int32_t> index_of = keys.positions();
  return [=](const Inputs& in) {
    return Attention{
        .queries = queries,
        .keys = keys,
        .heads = o.heads,
        .score =
            [&](int64_t h, int64_t i, int64_t j) {
              double sum = 0;
              for (int64_t c = 0; c < d; ++c) {
                sum += q(in, i, h * d + c) * k(in, j, h / group * d + c);
              }
              return sum * (o.scale > 0 ? o.scale : 1 / std::sqrt(static_cast<double>(d)));
            },
        .value = [&](int64_t h, int64_t j, int64_t c) { return v(in, j, h / group * d + c); },
        .value_width = d,
        .sees =
            [&](int64_t query, int64_t key, int64_t back) {
              if (!o.visibility) return !o.causal || back >= 0;
              const Visibility& rule = *o.visibility;
              return rule.sees(query, key, index_of[key]);
            },
        .kept = [drop = o.dropout.over(queries.rows())](
                    int64_t h, int64_t query,
                    int64_t key) { return drop.factor(query, key, static_cast<uint32_t>(h)); }}();
  };
}

}  // namespace heddle::definition
