// A case of packed attention with its plain definition in f64, for the tests of the kernels.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "heddle/kernels/kernels.h"

namespace heddle::test {

/// A matrix inside memory that is NaN elsewhere: between its rows, before and behind.
class Matrix {
 public:
  Matrix() = default;
  Matrix(DType dtype, int64_t rows, int64_t columns, int64_t slack = 3)
      : count(rows), width(columns), dtype_(dtype), stride_(columns + slack), begin_(slack + 1) {
    const int64_t elements = begin_ + (rows + 2) * stride_;
    memory_ = std::make_shared<std::vector<uint8_t>>(elements * size_of(dtype), 0xff);
  }
  /// Columns [column, column + columns) of another matrix, sharing its memory.
  Matrix(const Matrix& other, int64_t column, int64_t columns) : Matrix(other) {
    begin_ += column;
    width = columns;
  }
  Rows rows() const {
    return {memory_->data() + begin_ * size_of(dtype_), count, width, stride_, dtype_};
  }
  float get(int64_t r, int64_t c) const {
    return dtype_ == DType::bf16 ? static_cast<float>(rows().row<bf16>(r)[c])
                                 : rows().row<float>(r)[c];
  }
  void set(int64_t r, int64_t c, float value) {
    if (dtype_ == DType::bf16) {
      rows().row<bf16>(r)[c] = bf16(value);
    } else {
      rows().row<float>(r)[c] = value;
    }
  }
  /// Values of a normal distribution, the same for the same seed.
  void fill(uint64_t seed, float deviation = 1) {
    RngStream random(make_key(seed, 0, 0));
    for (int64_t r = 0; r < count; ++r) {
      for (int64_t c = 0; c < width; ++c) {
        const float radius = std::sqrt(-2 * std::log(1 - random.uniform()));
        set(r, c, deviation * radius * std::cos(6.2831853f * random.uniform()));
      }
    }
  }
  /// The bits of rows [begin, end).
  std::vector<uint32_t> bits(int64_t begin, int64_t end) const {
    std::vector<uint32_t> all;
    for (int64_t r = begin; r < end; ++r) {
      for (int64_t c = 0; c < width; ++c) all.push_back(std::bit_cast<uint32_t>(get(r, c)));
    }
    return all;
  }
  std::vector<uint32_t> bits() const { return bits(0, count); }
  /// Whether everything outside a matrix that does not share its memory is still NaN.
  bool slack_is_untouched() const {
    const int64_t size = size_of(dtype_);
    for (int64_t e = 0; e < static_cast<int64_t>(memory_->size()) / size; ++e) {
      const int64_t at = e - begin_;
      const bool inside = at >= 0 && at < count * stride_ && at % stride_ < width;
      for (int64_t b = 0; !inside && b < size; ++b) {
        if ((*memory_)[static_cast<size_t>(e * size + b)] != 0xff) return false;
      }
    }
    return true;
  }

  int64_t count = 0, width = 0;

 private:
  DType dtype_ = DType::f32;
  int64_t stride_ = 0, begin_ = 0;
  std::shared_ptr<std::vector<uint8_t>> memory_;
};

struct Lengths {
  int64_t queries, keys;
};

struct Shape {
  std::vector<Lengths> segments = {};
  int64_t heads = 2, head_dim = 16;
  bool causal = false;
  DType dtype = DType::f32;
  float dropout = 0;
  bool fused = false;  ///< q, k, v are columns of one matrix; as many queries as keys
  uint64_t seed = 1;
  int64_t window = 0;   ///< ranges: causal, and no more than so many keys
  bool orders = false;  ///< ranges over random orders: some keys are hidden, some queries blind
  int64_t reach = -1;   ///< of a bias of random values; below 0: none
  int64_t side = 0;     ///< of such a bias by pairs; 0: none

  bool has_ranges() const { return window > 0 || orders; }
};

/// Inputs, outputs and gradients of a shape, with the kernels' arguments.
struct Problem {
  explicit Problem(const Shape& given) : shape(given) {
    for (const Lengths& l : shape.segments) {
      q_offsets.push_back(q_offsets.back() + l.queries);
      k_offsets.push_back(k_offsets.back() + l.keys);
      for (int64_t i = 0; i < l.queries; ++i) {
        sample.push_back(static_cast<uint32_t>(40 + q_offsets.size()));
        position.push_back(static_cast<uint32_t>(i));
      }
    }
    const int64_t n = q_offsets.back(), m = k_offsets.back();
    const int64_t width = shape.heads * shape.head_dim;
    const DType t = shape.dtype;
    const Matrix all = shape.fused ? Matrix(t, n, 3 * width) : Matrix();
    const auto make = [&](int64_t rows, int64_t part) {
      return shape.fused ? Matrix(all, part * width, width) : Matrix(t, rows, width);
    };
    q = make(n, 0), k = make(m, 1), v = make(m, 2), o = Matrix(t, n, width);
    d_o = Matrix(t, n, width), dq = Matrix(t, n, width);
    dk = Matrix(t, m, width), dv = Matrix(t, m, width);
    q.fill(shape.seed * 8), k.fill(shape.seed * 8 + 1), v.fill(shape.seed * 8 + 2);
    d_o.fill(shape.seed * 8 + 3);
    lse.assign(static_cast<size_t>(n * shape.heads), std::nanf(""));
    make_ranges();
    RngStream random(make_key(shape.seed, 3, 0));
    const bool is_biased = shape.reach >= 0 || shape.side > 0;
    for (int64_t i = 0; is_biased && i < shape.heads * score_bias().entries(); ++i) {
      bias.push_back(4 * random.uniform() - 2);
    }
    d_bias.assign(bias.size(), std::nanf(""));
  }
  AttentionArgs args() {
    AttentionArgs a{q.rows(), k.rows(), v.rows(), o.rows()};
    a.q_offsets = q_offsets.data();
    a.k_offsets = k_offsets.data();
    a.segments = static_cast<int64_t>(shape.segments.size());
    a.heads = shape.heads;
    a.head_dim = shape.head_dim;
    a.scale = scale();
    a.causal = shape.causal;
    if (shape.has_ranges()) a.ranges = {first.data(), limit.data(), nullptr};
    if (shape.orders) a.ranges.order = order.data();
    if (!bias.empty()) a.bias = score_bias();
    a.dropout = {shape.dropout, make_key(7, 1, 2), sample.data(), position.data()};
    a.lse = lse.data();
    return a;
  }
  void forward() { kernels().attention(args()); }
  void backward() {
    kernels().attention_backward({args(), d_o.rows(), dq.rows(), dk.rows(), dv.rows(),
                                  bias.empty() ? nullptr : d_bias.data()});
  }
  /// Whether a query sees a key, both counted from the start of their segment.
  bool sees(int64_t segment, int64_t query, int64_t key) const {
    const Lengths l = shape.segments[static_cast<size_t>(segment)];
    if (!shape.has_ranges()) return !shape.causal || key <= query + l.keys - l.queries;
    const auto query_row = static_cast<size_t>(q_offsets[static_cast<size_t>(segment)] + query);
    const auto key_row = static_cast<size_t>(k_offsets[static_cast<size_t>(segment)] + key);
    const int64_t at = shape.orders ? order[key_row] : key;
    return first[query_row] <= at && at < limit[query_row];
  }
  float scale() const { return 1.0f / std::sqrt(static_cast<float>(shape.head_dim)); }
  ScoreBias score_bias() const { return {bias.data(), shape.reach, shape.side}; }

  Shape shape;
  std::vector<int64_t> q_offsets{0}, k_offsets{0};
  std::vector<uint32_t> sample, position;
  Matrix q, k, v, o, d_o, dq, dk, dv;
  std::vector<float> lse, bias, d_bias;
  std::vector<int32_t> first, limit, order;

 private:
  void make_ranges() {
    RngStream random(make_key(shape.seed, 4, 0));
    const auto below = [&](int64_t n) {
      return static_cast<int32_t>(random.uniform() * static_cast<float>(n));
    };
    for (const Lengths& l : shape.segments) {
      for (int64_t i = 0; i < l.queries && shape.has_ranges(); ++i) {
        const int64_t end = std::clamp<int64_t>(i + 1 + l.keys - l.queries, 0, l.keys);
        const int32_t one = below(l.keys + 1), other = below(l.keys + 1);
        first.push_back(shape.orders
                            ? std::min(one, other)
                            : static_cast<int32_t>(std::max<int64_t>(0, end - shape.window)));
        limit.push_back(shape.orders ? std::max(one, other) : static_cast<int32_t>(end));
      }
      for (int64_t j = 0; j < l.keys && shape.orders; ++j) {
        const bool is_hidden = below(8) == 0;
        order.push_back(is_hidden ? std::numeric_limits<int32_t>::max() : below(l.keys));
      }
    }
  }
};

/// The plain definition: everything in f64, one query and one head at a time.
struct Reference {
  explicit Reference(const Problem& problem) : p(problem) {
    o.resize(static_cast<size_t>(p.q.count * p.q.width));
    dq = o;
    dk.resize(static_cast<size_t>(p.k.count * p.k.width));
    dv = dk;
    lse.resize(p.lse.size());
    d_bias.resize(p.bias.size());
    d_bias_size = d_bias;
    for (int64_t s = 0; s < static_cast<int64_t>(p.shape.segments.size()); ++s) {
      const Lengths l = p.shape.segments[static_cast<size_t>(s)];
      for (int64_t i = 0; i < l.queries; ++i) {
        for (int64_t h = 0; h < p.shape.heads; ++h) query(s, i, h);
      }
    }
  }
  std::vector<double> o, dq, dk, dv;  ///< [rows, heads * head_dim]
  std::vector<double> lse;            ///< [q rows, heads]
  std::vector<double> d_bias;         ///< as the bias
  std::vector<double> d_bias_size;    ///< the same of the absolute values of what it sums
  double loss = 0;                    ///< sum of o * d_o

 private:
  /// keep_scale or 0: the definition beside heddle::Dropout, word for word.
  double mask(int64_t row, int64_t head, int64_t key) const {
    const Dropout d{p.shape.dropout, make_key(7, 1, 2), p.sample.data(), p.position.data()};
    if (d.p == 0) return 1;
    const int64_t block = key / 128, lane = key % 16, slot = (key % 128) / 16;
    const PhiloxCounter words = philox({static_cast<uint32_t>(block * 16 + lane), d.position[row],
                                        d.sample[row], static_cast<uint32_t>(head)},
                                       d.key);
    const uint32_t u = (words[static_cast<size_t>(slot / 2)] >> (slot % 2 * 16)) & 0xffffu;
    return u < d.threshold() ? 0.0 : static_cast<double>(d.keep_scale());
  }
  void query(int64_t segment, int64_t i, int64_t head) {
    const Lengths l = p.shape.segments[static_cast<size_t>(segment)];
    // Where the bias of a key lies.
    const auto distance = [&](int64_t j) {
      const int64_t reach = p.shape.reach, side = p.shape.side;
      if (side > 0) return static_cast<size_t>((head * side + i) * side + j);
      const int64_t d = std::clamp(j - (i + l.keys - l.queries), -reach, reach);
      return static_cast<size_t>(head * (2 * reach + 1) + reach + d);
    };
    const int64_t row = p.q_offsets[static_cast<size_t>(segment)] + i;
    const int64_t first = p.k_offsets[static_cast<size_t>(segment)];
    const int64_t dim = p.shape.head_dim, c0 = head * dim, width = p.q.width;
    std::vector<double> weight, back;
    double most = -std::numeric_limits<double>::infinity(), sum = 0, mean = 0;
    for (int64_t j = 0; j < l.keys; ++j) {
      double score = 0, gradient = 0;
      for (int64_t c = c0; c < c0 + dim; ++c) {
        score += static_cast<double>(p.q.get(row, c)) * static_cast<double>(p.k.get(first + j, c));
        gradient +=
            static_cast<double>(p.d_o.get(row, c)) * static_cast<double>(p.v.get(first + j, c));
      }
      weight.push_back(score * static_cast<double>(p.scale()));
      if (!p.bias.empty()) weight.back() += static_cast<double>(p.bias[distance(j)]);
      if (!p.sees(segment, i, j)) weight.back() = -std::numeric_limits<double>::infinity();
      back.push_back(gradient * mask(row, head, j));
      most = std::max(most, weight.back());
    }
    lse[static_cast<size_t>(row * p.shape.heads + head)] = most;
    if (std::isinf(most)) return;
    for (double& w : weight) sum += w = std::exp(w - most);
    lse[static_cast<size_t>(row * p.shape.heads + head)] += std::log(sum);
    for (size_t j = 0; j < weight.size(); ++j) mean += (weight[j] /= sum) * back[j];
    for (int64_t j = 0; j < l.keys; ++j) {
      const size_t at = static_cast<size_t>(j);
      if (weight[at] == 0) continue;
      const double used = weight[at] * mask(row, head, j);
      const double d_score = weight[at] * (back[at] - mean);
      const double ds = d_score * static_cast<double>(p.scale());
      if (!p.bias.empty()) {
        d_bias[distance(j)] += d_score;
        d_bias_size[distance(j)] += weight[at] * (std::abs(back[at]) + std::abs(mean));
      }
      for (int64_t c = c0; c < c0 + dim; ++c) {
        const auto qi = static_cast<size_t>(row * width + c);
        const auto ki = static_cast<size_t>((first + j) * width + c);
        o[qi] += used * static_cast<double>(p.v.get(first + j, c));
        dq[qi] += ds * static_cast<double>(p.k.get(first + j, c));
        dk[ki] += ds * static_cast<double>(p.q.get(row, c));
        dv[ki] += used * static_cast<double>(p.d_o.get(row, c));
      }
    }
    for (int64_t c = c0; c < c0 + dim; ++c) {
      loss += o[static_cast<size_t>(row * width + c)] * static_cast<double>(p.d_o.get(row, c));
    }
  }
  const Problem& p;
};

/// max |seen - expected| / max(1, max |expected|); infinite if anything seen is not finite.
inline double error_of(const Matrix& seen, const std::vector<double>& expected) {
  double error = 0, most = 1;
  for (int64_t r = 0; r < seen.count; ++r) {
    for (int64_t c = 0; c < seen.width; ++c) {
      const double e = expected[static_cast<size_t>(r * seen.width + c)];
      const double x = static_cast<double>(seen.get(r, c));
      error = std::isfinite(x) ? std::max(error, std::abs(x - e))
                               : std::numeric_limits<double>::infinity();
      if (!std::isfinite(error)) return error;
      most = std::max(most, std::abs(e));
    }
  }
  return error / most;
}

/// The segment [begin, begin + count) of a fused problem as a problem of its own.
inline Problem alone(const Problem& batch, int64_t segment) {
  Shape shape = batch.shape;
  shape.segments = {batch.shape.segments[static_cast<size_t>(segment)]};
  Problem p(shape);
  const auto copy = [](const Matrix& from, int64_t begin, Matrix& to) {
    for (int64_t r = 0; r < to.count; ++r) {
      for (int64_t c = 0; c < to.width; ++c) to.set(r, c, from.get(begin + r, c));
    }
  };
  const int64_t q0 = batch.q_offsets[static_cast<size_t>(segment)];
  const int64_t k0 = batch.k_offsets[static_cast<size_t>(segment)];
  copy(batch.q, q0, p.q), copy(batch.d_o, q0, p.d_o);
  copy(batch.k, k0, p.k), copy(batch.v, k0, p.v);
  for (size_t i = 0; i < p.sample.size(); ++i) {
    p.sample[i] = batch.sample[static_cast<size_t>(q0) + i];
  }
  return p;
}

}  // namespace heddle::test
