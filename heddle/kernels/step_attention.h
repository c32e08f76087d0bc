// Kernels of attention within the steps of a recurrent decoder: each step a query for each sequence
// over the keys of its source, by any scores.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "heddle/kernels/attention.h"
#include "heddle/kernels/family.h"

namespace heddle {

/// Which keys and values a step's sequences ask, and how; what was found is kept for all steps.
struct StepAttention {
  Scoring scoring = Scoring::dot;
  float scale = 1;                    ///< of dot products
  const float* score = nullptr;       ///< [d] of additive, [2 d] of linear scores: query, key
  Rows k = {}, v = {};                ///< [any, d], [any, e]
  const int64_t* offsets = nullptr;   ///< [sources + 1] of keys
  const int32_t* key_rows = nullptr;  ///< rows of k and v that are the keys; null: all in order
  Rows queries = {};                  ///< [all, d]
  const int64_t* places = nullptr;    ///< [all] where the weights of each row begin
  float* weights = nullptr;           ///< [pairs] softmax of the scores
  float* gates = nullptr;             ///< [all] what contexts are multiplied by; null: 1

  int64_t key_row(int64_t i) const { return key_rows == nullptr ? i : key_rows[i]; }
};

/// The query of a row is q[i] + asked[row]; contexts[row] = gate sum_i weight_i v_i;
/// gate = sigmoid(gate_logits[i]), if there are some.
struct StepAttentionArgs {
  StepAttention attention = {};
  const int32_t* rows = nullptr;       ///< [n] of the batch
  const int32_t* sources = nullptr;    ///< [n] whose keys each asks
  Rows q = {};                         ///< [n, d]; the sum is kept in attention.queries
  Rows asked = {};                     ///< [all, d]; may be absent
  const float* gate_logits = nullptr;  ///< [n]
  Rows contexts = {};                  ///< [all, e]
  Rows context = {};                   ///< [n, e] the same, of these rows alone
};

/// Gradients of scores, queries and gates in one step.
struct StepAttentionBackwardArgs {
  StepAttention attention = {};  ///< as the forward pass left it
  const int32_t* rows = nullptr;
  const int32_t* sources = nullptr;
  Rows dcontext = {};               ///< [n, e] f32, by the cell
  Rows dy = {};                     ///< [all, e] what contexts get from outside; may be absent
  const float* dweights = nullptr;  ///< [pairs] what weights get from outside; may be null
  Rows dcontexts = {};              ///< [all, e] the sum of both
  float* dscores = nullptr;         ///< [pairs]
  Rows dq = {};                     ///< [n, d]
  Rows dqueries = {};               ///< [all, d] the same
  float* dgate_logits = nullptr;    ///< [all], where there are gates
};

/// Gradients of keys, values and score weights, over all steps: sequence s asks source s.
struct StepAttentionSourcesArgs {
  StepAttention attention = {};
  const int64_t* row_offsets = nullptr;  ///< [sources + 1] of rows
  int64_t sources = 0;
  Rows dcontexts = {};
  const float* dscores = nullptr;
  Rows dk = {}, dv = {};  ///< as k and v
  Rows dscore = {};       ///< [sources, d or 2 d] f32; absent: there are no score weights
};

inline Work work_of(const StepAttentionArgs& a) {
  return work_of(a.q, a.q, a.attention.k, a.attention.v, a.context, a.context);
}
inline Work work_of(const StepAttentionBackwardArgs& a) {
  return work_of(a.dcontext, a.dq, a.dq, a.dq, a.attention.k, a.attention.v);
}
inline Work work_of(const StepAttentionSourcesArgs& a) {
  return work_of(a.attention.k, a.dk, a.dv, a.dcontexts, a.attention.queries);
}

namespace definition {

/// Of a query row and a key.
inline double step_score(const StepAttention& a, int64_t row, int64_t key) {
  const int64_t d = a.k.width;
  double sum = 0;
  for (int64_t c = 0; c < d; ++c) {
    const double q = element(a.queries, row, c), k = element(a.k, key, c);
    if (a.scoring == Scoring::dot) sum += q * k * a.scale;
    if (a.scoring == Scoring::additive) sum += a.score[c] * std::tanh(q + k);
    if (a.scoring == Scoring::linear) sum += a.score[c] * q + a.score[d + c] * k;
  }
  return sum;
}
/// Of that score, by column c of the query; by that of the key where `of_key`.
inline double step_score_slope(const StepAttention& a, int64_t row, int64_t key, int64_t c,
                               bool of_key) {
  const double q = element(a.queries, row, c), k = element(a.k, key, c);
  if (a.scoring == Scoring::dot) return a.scale * (of_key ? q : k);
  if (a.scoring == Scoring::linear) return a.score[of_key ? a.k.width + c : c];
  return a.score[c] * (1 - std::tanh(q + k) * std::tanh(q + k));
}
inline void step_attention(const StepAttentionArgs& args) {
  const StepAttention& a = args.attention;
  for (int64_t i = 0; i < args.context.rows; ++i) {
    const int64_t row = args.rows[i], first = a.offsets[args.sources[i]];
    const int64_t count = a.offsets[args.sources[i] + 1] - first;
    for (int64_t c = 0; c < args.q.width; ++c) {
      const double asked = args.asked.data ? element(args.asked, row, c) : 0;
      set_element(a.queries, row, c, element(args.q, i, c) + asked);
    }
    std::vector<double> w(count);
    double largest = -HUGE_VAL, sum = 0;
    for (int64_t j = 0; j < count; ++j) {
      largest = std::max(largest, w[j] = step_score(a, row, a.key_row(first + j)));
    }
    for (double& each : w) sum += each = std::exp(each - largest);
    for (int64_t j = 0; j < count; ++j) {
      a.weights[a.places[row] + j] = static_cast<float>(w[j] /= sum);
    }
    if (a.gates) a.gates[row] = static_cast<float>(1 / (1 + std::exp(-args.gate_logits[i])));
    for (int64_t c = 0; c < args.context.width; ++c) {
      double y = 0;
      for (int64_t j = 0; j < count; ++j) y += w[j] * element(a.v, a.key_row(first + j), c);
      if (a.gates) y *= a.gates[row];
      set_element(args.context, i, c, y);
      set_element(args.contexts, row, c, y);
    }
  }
}
inline void step_attention_backward(const StepAttentionBackwardArgs& b) {
  const StepAttention& a = b.attention;
  for (int64_t i = 0; i < b.dq.rows; ++i) {
    const int64_t row = b.rows[i], first = a.offsets[b.sources[i]];
    const int64_t count = a.offsets[b.sources[i] + 1] - first;
    const double gate = a.gates ? a.gates[row] : 1;
    for (int64_t c = 0; c < b.dcontext.width; ++c) {
      set_element(b.dcontexts, row, c,
                  element(b.dcontext, i, c) + (b.dy.data ? element(b.dy, row, c) : 0));
    }
    std::vector<double> dw(count);
    double mean = 0, of_gate = 0;
    for (int64_t j = 0; j < count; ++j) {
      const float w = a.weights[a.places[row] + j];
      for (int64_t c = 0; c < a.v.width; ++c) {
        dw[j] += element(b.dcontexts, row, c) * element(a.v, a.key_row(first + j), c);
      }
      of_gate += w * dw[j];
      dw[j] = gate * dw[j] + (b.dweights ? b.dweights[a.places[row] + j] : 0);
      mean += w * dw[j];
    }
    for (int64_t j = 0; j < count; ++j) {
      const int64_t at = a.places[row] + j;
      b.dscores[at] = static_cast<float>(a.weights[at] * (dw[j] - mean));
    }
    if (a.gates) b.dgate_logits[row] = static_cast<float>(of_gate * gate * (1 - gate));
    for (int64_t c = 0; c < b.dq.width; ++c) {
      double sum = 0;
      for (int64_t j = 0; j < count; ++j) {
        sum +=
            b.dscores[a.places[row] + j] * step_score_slope(a, row, a.key_row(first + j), c, false);
      }
      set_element(b.dq, i, c, sum);
      set_element(b.dqueries, row, c, sum);
    }
  }
}
inline void step_attention_sources(const StepAttentionSourcesArgs& b) {
  const StepAttention& a = b.attention;
  const int64_t d = a.k.width;
  for (int64_t s = 0; s < b.sources; ++s) {
    std::vector<double> dscore(2 * d);
    const auto for_rows = [&](int64_t key, const auto& f) {
      for (int64_t r = b.row_offsets[s]; r < b.row_offsets[s + 1]; ++r) {
        f(r, a.places[r] + key - a.offsets[s]);
      }
    };
    for (int64_t key = a.offsets[s]; key < a.offsets[s + 1]; ++key) {
      for (int64_t c = 0; c < d; ++c) {
        double sum = 0;
        for_rows(key, [&](int64_t r, int64_t at) {
          sum += b.dscores[at] * step_score_slope(a, r, key, c, true);
          const double q = element(a.queries, r, c), k = element(a.k, key, c);
          const bool is_additive = a.scoring == Scoring::additive;
          dscore[c] += b.dscores[at] * (is_additive ? std::tanh(q + k) : q);
          dscore[d + c] += b.dscores[at] * k;
        });
        set_element(b.dk, key, c, sum);
      }
      for (int64_t c = 0; c < a.v.width; ++c) {
        double sum = 0;
        for_rows(key, [&](int64_t r, int64_t at) {
          sum += element(b.dcontexts, r, c) * a.weights[at] * (a.gates ? a.gates[r] : 1);
        });
        set_element(b.dv, key, c, sum);
      }
    }
    for (int64_t c = 0; c < b.dscore.width; ++c) set_element(b.dscore, s, c, dscore[c]);
  }
}

}  // namespace definition

/// What a row gets depends on its own source only, whatever stands beside it.
struct StepAttentionKernels {
  void (*step_attention)(const StepAttentionArgs&);
  void (*step_attention_backward)(const StepAttentionBackwardArgs&);
  void (*step_attention_sources)(const StepAttentionSourcesArgs&);

  static StepAttentionKernels of_cpu();
  static void list(const auto& visit) {
    HEDDLE_LIST_KERNEL(StepAttentionKernels, step_attention);
    HEDDLE_LIST_KERNEL(StepAttentionKernels, step_attention_backward);
    HEDDLE_LIST_KERNEL(StepAttentionKernels, step_attention_sources);
  }
};

}  // namespace heddle
