// Scores pair by pair, then mask, softmax and weighted sum.
#include "heddle/ops/scoring.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "heddle/ops/elementwise.h"
#include "heddle/ops/embedding.h"
#include "heddle/ops/matmul.h"
#include "heddle/ops/reduce.h"
#include "heddle/ops/shape.h"

namespace heddle {
namespace {

constexpr float kHidden = -std::numeric_limits<float>::infinity();

// The largest of some numbers of rows; a negative one counts as larger than all others.
uint32_t largest(std::span<const int32_t> rows) {
  uint32_t most = 0;
  for (const int32_t row : rows) most = std::max(most, static_cast<uint32_t>(row));
  return most;
}

// Pairs are made for at most so many elements at a time.
constexpr int64_t kChunk = 1 << 20;

void check_widths(const char* name, const Tensor& q, const Tensor& k) {
  check(q.rank() == 2 && k.rank() == 2 && q.size(1) == k.size(1) && q.dtype() == k.dtype(),
        ErrorKind::shape, "{}: queries are {}, keys {}; their widths must be equal", name,
        q.shape(), k.shape());
}

// Row i m + j is q[i] + k[j]. returns: [n m, d]
Tensor pair_sums(const Tensor& q, const Tensor& k) {
  const int64_t n = q.size(0), m = k.size(0);
  std::vector<int32_t> of_q, of_k;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < m; ++j) {
      of_q.push_back(static_cast<int32_t>(i));
      of_k.push_back(static_cast<int32_t>(j));
    }
  }
  // In f32, which gradients of looked-up rows are summed in.
  return add(gather_rows(cast(q, DType::f32), of_q), gather_rows(cast(k, DType::f32), of_k));
}

// score(rows of pairs) -> [pairs, 1], for chunks of queries. returns: [n, m]
template <class F>
Tensor over_pairs(const Tensor& q, const Tensor& k, const F& score) {
  const int64_t n = q.size(0), m = k.size(0);
  const int64_t rows = std::max<int64_t>(1, kChunk / std::max<int64_t>(1, m * q.size(1)));
  std::vector<Tensor> parts;
  for (int64_t begin = 0; begin < n; begin += rows) {
    const int64_t count = std::min(rows, n - begin);
    const Tensor pairs = pair_sums(count == n ? q : slice(q, 0, begin, count), k);
    parts.push_back(reshape(score(pairs), {count, m}));
  }
  return parts.size() == 1 ? parts[0] : concat(parts, 0);
}

Tensor as_mask(std::span<const uint8_t> sees, int64_t n, int64_t m) {
  Tensor mask = Tensor::zeros({n, m}, DType::f32);
  for (int64_t i = 0; i < n * m; ++i) {
    if (sees[i] == 0) mask.data<float>()[i] = kHidden;
  }
  return mask;
}

// The dropout of the weights of one segment and head: other numbers for each head.
DropoutSpec part_of(const DropoutSpec& spec, int64_t begin, int64_t count, int64_t head) {
  if (spec.p <= 0) return {};
  const auto part = [&](const std::vector<uint32_t>& all) {
    return std::vector<uint32_t>(all.begin() + begin, all.begin() + begin + count);
  };
  DropoutSpec result = spec.of_head(head);
  result.rows =
      std::make_shared<const RowIds>(RowIds{part(spec.rows->sample), part(spec.rows->position)});
  return result;
}

}  // namespace

void check_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Segments& queries,
                     const Segments& keys, const AttentionOptions& o) {
  const int64_t key_heads = o.heads_of_keys();
  check(o.heads >= 1 && q.size(1) % o.heads == 0 && o.heads % key_heads == 0, ErrorKind::shape,
        "attention: the width {} is not divisible by {} heads, or these by {} of the keys",
        q.size(1), o.heads, key_heads);
  check(q.size(1) / o.heads * key_heads == k.size(1) && k.shape() == v.shape() &&
            q.dtype() == k.dtype() && k.dtype() == v.dtype(),
        ErrorKind::shape, "attention: q is {}, k {}, v {}", q.shape(), k.shape(), v.shape());
  const int64_t key_count =
      o.key_rows.empty() ? k.size(0) : static_cast<int64_t>(o.key_rows.size());
  check(!o.bias.table.defined() || (o.bias.buckets != nullptr && o.bias.buckets->size() % 2 == 1 &&
                                    o.bias.table.rank() == 2 && o.bias.table.size(1) == o.heads &&
                                    o.bias.table.dtype() == DType::f32),
        ErrorKind::shape,
        "attention: a bias needs a table [buckets, {}] f32 and an odd number of distances",
        o.heads);
  for (int64_t s = 0; s < queries.count() && o.bias.codes != nullptr; ++s) {
    check(queries.length(s) == keys.length(s) && keys.length(s) <= std::ssize(*o.bias.codes),
          ErrorKind::shape,
          "attention: a segment of {} queries and {} keys; by {} codes there must be as many of "
          "both, and no more",
          queries.length(s), keys.length(s), o.bias.codes->size());
  }
  if (o.visibility != nullptr) o.visibility->check_sizes(queries.rows(), keys.rows());
  check(queries.count() == keys.count() && queries.rows() == q.size(0) && keys.rows() == key_count,
        ErrorKind::shape,
        "attention: {} query segments of {} rows over {} key segments of {} rows; "
        "q is {}, and there are {} keys",
        queries.count(), queries.rows(), keys.count(), keys.rows(), q.shape(), key_count);
  if (o.key_rows.empty()) return;
  const uint32_t most = largest(o.key_rows);
  check(most < k.size(0), ErrorKind::shape, "attention: row {} of the {} of k and v",
        static_cast<int32_t>(most), k.size(0));
}

std::vector<uint8_t> seen_keys(const Segments& queries, const Segments& keys, int64_t segment,
                               QueryRows rows, const AttentionOptions& o) {
  const bool is_causal = o.causal && o.visibility == nullptr;
  if (!is_causal && (o.visibility == nullptr || o.visibility->is_all())) return {};
  const int64_t n = queries.length(segment), m = keys.length(segment);
  std::vector<uint8_t> sees;
  for (int64_t i = rows.first; i < rows.first + rows.count; ++i) {
    for (int64_t j = 0; j < m; ++j) {
      sees.push_back(
          is_causal ? j <= i + m - n
                    : o.visibility->sees(queries.begin(segment) + i, keys.begin(segment) + j, j));
    }
  }
  return sees;
}

Tensor add_bias(const Tensor& scores, const RelativeBias& bias, int64_t head, int64_t position) {
  if (!bias.table.defined()) return scores;
  std::vector<int32_t> rows;
  for (int64_t i = 0; i < scores.size(0); ++i) {
    for (int64_t j = 0; j < scores.size(1); ++j) {
      rows.push_back(bias.bucket(bias.distance(position + i, j)));
    }
  }
  const Tensor of_head = concat({slice(bias.table, 1, head, 1)}, 0);
  return add(cast(scores, DType::f32), reshape(gather_rows(of_head, rows), scores.shape()));
}

Tensor hide(const Tensor& scores, std::span<const uint8_t> mask) {
  return mask.empty() ? scores : add(scores, as_mask(mask, scores.size(0), scores.size(1)));
}

Tensor dot_scores(const Tensor& q, const Tensor& k, float factor) {
  check_widths("dot scores", q, k);
  return scale(matmul(q, transpose(k, 0, 1)), factor);
}

Tensor additive_scores(const Tensor& q, const Tensor& k, const Tensor& v) {
  check_widths("additive scores", q, k);
  check(v.rank() == 2 && v.size(0) == 1 && v.size(1) == q.size(1), ErrorKind::shape,
        "additive scores: v is {}; queries are {}, so it must be [1, {}]", v.shape(), q.shape(),
        q.size(1));
  return over_pairs(q, k, [&](const Tensor& pairs) {
    return linear(activation(Activation::tanh, pairs), cast(v, DType::f32), {});
  });
}

Tensor linear_scores(const Tensor& q, const Tensor& k, const Tensor& w) {
  check_widths("linear scores", q, k);
  const int64_t d = q.size(1);
  check(w.rank() == 2 && w.size(0) == 1 && w.size(1) == 2 * d, ErrorKind::shape,
        "linear scores: w is {}; queries are {}, so it must be [1, {}]", w.shape(), q.shape(),
        2 * d);
  const Tensor of_q = linear(q, slice(w, 1, 0, d), {}), of_k = linear(k, slice(w, 1, d, d), {});
  return over_pairs(of_q, of_k, [](const Tensor& pairs) { return pairs; });
}

Tensor gaussian_scores(const Tensor& q, const Tensor& k) {
  check_widths("gaussian scores", q, k);
  // Differences first: squares of large numbers would lose those of near ones.
  const Tensor halves = Tensor::full({1, q.size(1)}, -0.5f);
  return over_pairs(q, scale(k, -1),
                    [&](const Tensor& pairs) { return linear(mul(pairs, pairs), halves, {}); });
}

Tensor attend(const Tensor& scores, const Tensor& v, std::span<const uint8_t> mask,
              const DropoutSpec& spec) {
  const int64_t n = scores.size(0), m = scores.size(1);
  check(v.rank() == 2 && v.size(0) == m, ErrorKind::shape,
        "attend: scores are {} but values {}; there must be a value for each key", scores.shape(),
        v.shape());
  check(mask.empty() || static_cast<int64_t>(mask.size()) == n * m, ErrorKind::shape,
        "attend: the mask has {} values, scores are {}", mask.size(), scores.shape());
  if (m == 0) return Tensor::zeros({n, v.size(1)}, v.dtype());
  Tensor weights = softmax(hide(scores, mask));
  if (spec.p > 0) weights = dropout(weights, spec);
  if (weights.dtype() != v.dtype()) weights = cast(weights, v.dtype());
  return matmul(weights, v);
}

Tensor head_scores(const Tensor& q, const Tensor& k, const AttentionOptions& o, int64_t head) {
  if (o.scoring == Scoring::dot) {
    const float root = std::sqrt(static_cast<float>(q.size(1)));
    return dot_scores(q, k, o.scale != 0 ? o.scale : 1.0f / root);
  }
  const int64_t d = q.size(1), width = o.scoring == Scoring::linear ? 2 * d : d;
  check(o.score_weight.defined() && o.score_weight.size(0) == o.heads &&
            o.score_weight.size(1) == width,
        ErrorKind::shape, "attention: this scoring needs weights [{}, {}]", o.heads, width);
  const Tensor weight = slice(o.score_weight, 0, head, 1);
  return o.scoring == Scoring::linear ? linear_scores(q, k, weight) : additive_scores(q, k, weight);
}

Tensor scored_attention(const Tensor& q, const Tensor& all_k, const Tensor& all_v,
                        const Segments& queries, const Segments& keys, const AttentionOptions& o) {
  check_attention(q, all_k, all_v, queries, keys, o);
  static_cast<void>(o.dropout.over(q.size(0)));  // refuses what does not fit
  const Tensor k = o.key_rows.empty() ? all_k : gather_rows(all_k, o.key_rows);
  const Tensor v = o.key_rows.empty() ? all_v : gather_rows(all_v, o.key_rows);
  const int64_t d = q.size(1) / o.heads;
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < queries.count(); ++i) {
    const int64_t n = queries.length(i), m = keys.length(i);
    if (n == 0) continue;
    const std::vector<uint8_t> sees = seen_keys(queries, keys, i, {0, n}, o);
    std::vector<Tensor> heads;
    for (int64_t h = 0; h < o.heads; ++h) {
      const auto part = [&](const Tensor& x, const Segments& s) {
        return slice(slice(x, 0, s.begin(i), s.length(i)), 1, (&x == &q ? h : o.key_head(h)) * d,
                     d);
      };
      const Tensor scores =
          m == 0 ? Tensor::empty({n, 0}, q.dtype())
                 : add_bias(head_scores(part(q, queries), part(k, keys), o, h), o.bias, h, m - n);
      heads.push_back(
          attend(scores, part(v, keys), sees, part_of(o.dropout, queries.begin(i), n, h)));
    }
    parts.push_back(concat(heads, 1));
  }
  return parts.empty() ? Tensor::empty({0, q.size(1)}, q.dtype()) : concat(parts, 0);
}

}  // namespace heddle
