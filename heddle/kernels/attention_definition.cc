// Softmax attention and its gradient in plain loops.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "heddle/kernels/attention.h"
#include "heddle/kernels/family.h"

namespace heddle::definition {

/// One query of one head: the keys that it sees and its weights for them.
class AttentionRow {
 public:
  AttentionRow(const AttentionArgs& args, int64_t segment, int64_t head, int64_t query)
      : a_(args), segment_(segment), head_(head), query_(query) {
    double largest = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t j = 0; j < keys(); ++j) {
      if (!sees(j)) continue;
      seen.push_back(j);
      weights.push_back(score(j));
      largest = std::max(largest, weights.back());
    }
    for (const double s : weights) sum += std::exp(s - largest);
    lse = seen.empty() ? largest : largest + std::log(sum);
    for (double& s : weights) s = std::exp(s - lse);
  }
  std::vector<int64_t> seen;    ///< numbers in the segment
  std::vector<double> weights;  ///< of these
  double lse = 0;

  /// The row of k and v that holds a key.
  int64_t row(int64_t key) const {
    const int64_t at = a_.k_offsets[segment_] + key;
    return a_.key_rows ? a_.key_rows[at] : at;
  }
  /// The column where the head's keys and values begin.
  int64_t key_column() const { return head_ / (a_.heads * a_.head_dim / a_.k.width) * a_.head_dim; }
  double factor(int64_t key) const {
    return a_.dropout.factor(query_, key, static_cast<uint32_t>(head_));
  }
  /// Where the key's score has its bias.
  int64_t bias_at(int64_t key) const {
    const int64_t reach = a_.bias.reach, first = head_ * a_.bias.entries();
    if (a_.bias.is_by_pairs()) {
      return first + (query_ - a_.q_offsets[segment_]) * a_.bias.side + key;
    }
    return first + reach + std::clamp(key - last_causal(), -reach, reach);
  }

 private:
  int64_t keys() const { return a_.k_offsets[segment_ + 1] - a_.k_offsets[segment_]; }
  int64_t last_causal() const {
    return query_ - a_.q_offsets[segment_] + keys() -
           (a_.q_offsets[segment_ + 1] - a_.q_offsets[segment_]);
  }
  bool sees(int64_t key) const {
    if (a_.ranges.limit == nullptr) return !a_.causal || key <= last_causal();
    const int64_t order = a_.ranges.order ? a_.ranges.order[a_.k_offsets[segment_] + key] : key;
    return a_.ranges.first[query_] <= order && order < a_.ranges.limit[query_];
  }
  double score(int64_t key) const {
    double sum = 0;
    for (int64_t c = 0; c < a_.head_dim; ++c) {
      sum += element(a_.q, query_, head_ * a_.head_dim + c) *
             element(a_.k, row(key), key_column() + c);
    }
    return sum * a_.scale + (a_.bias.values ? a_.bias.values[bias_at(key)] : 0);
  }

  const AttentionArgs& a_;
  int64_t segment_, head_, query_;
};

/// Calls f(head, query, row) for each query of each head.
template <class F>
void for_attention_rows(const AttentionArgs& a, const F& f) {
  for (int64_t s = 0; s < a.segments; ++s) {
    for (int64_t h = 0; h < a.heads; ++h) {
      for (int64_t i = a.q_offsets[s]; i < a.q_offsets[s + 1]; ++i)
        f(h, i, AttentionRow(a, s, h, i));
    }
  }
}

void attention(const AttentionArgs& a) {
  for_attention_rows(a, [&](int64_t h, int64_t i, const AttentionRow& of) {
    for (int64_t c = 0; c < a.head_dim; ++c) {
      double sum = 0;
      for (size_t l = 0; l < of.seen.size(); ++l) {
        sum += of.weights[l] * of.factor(of.seen[l]) *
               element(a.v, of.row(of.seen[l]), of.key_column() + c);
      }
      set_element(a.o, i, h * a.head_dim + c, sum);
    }
    if (a.lse) a.lse[i * a.heads + h] = static_cast<float>(of.lse);
  });
}

void attention_backward(const AttentionBackwardArgs& b) {
  const AttentionArgs& a = b.forward;
  const int64_t q_width = a.heads * a.head_dim, width = b.dk.width;
  std::vector<double> dq(a.q.rows * q_width), dk(a.k.rows * width), dv(a.k.rows * width);
  std::vector<double> d_bias(a.bias.values ? a.heads * a.bias.entries() : 0);
  for_attention_rows(a, [&](int64_t h, int64_t i, const AttentionRow& of) {
    std::vector<double> dp(of.seen.size());
    double mean = 0;
    const int64_t column = h * a.head_dim, shared = of.key_column();
    const int64_t to = width == q_width ? column : shared;  // a gradient for each head of queries
    for (size_t l = 0; l < of.seen.size(); ++l) {
      const int64_t row = of.row(of.seen[l]);
      const double factor = of.factor(of.seen[l]);
      for (int64_t c = 0; c < a.head_dim; ++c) {
        const double d_o = element(b.d_o, i, column + c);
        dp[l] += d_o * factor * element(a.v, row, shared + c);
        dv[row * width + to + c] += of.weights[l] * factor * d_o;
      }
      mean += of.weights[l] * dp[l];
    }
    for (size_t l = 0; l < of.seen.size(); ++l) {
      const int64_t row = of.row(of.seen[l]);
      const double ds = of.weights[l] * (dp[l] - mean);
      for (int64_t c = 0; c < a.head_dim; ++c) {
        dq[i * q_width + column + c] += ds * a.scale * element(a.k, row, shared + c);
        dk[row * width + to + c] += ds * a.scale * element(a.q, i, column + c);
      }
      if (!d_bias.empty()) d_bias[of.bias_at(of.seen[l])] += ds;
    }
  });
  const auto write = [&](const Rows& to, const std::vector<double>& from, const int64_t* offsets) {
    for (int64_t r = offsets[0]; r < offsets[a.segments]; ++r) {
      for (int64_t c = 0; c < to.width; ++c) set_element(to, r, c, from[r * to.width + c]);
    }
  };
  write(b.dq, dq, a.q_offsets);
  write(b.dk, dk, a.k_offsets);
  write(b.dv, dv, a.k_offsets);
  for (size_t i = 0; i < d_bias.size() && b.d_bias; ++i)
    b.d_bias[i] = static_cast<float>(d_bias[i]);
}

}  // namespace heddle::definition
