// Attention within the steps of a recurrent decoder: a few keys for each query, so rows are vectors
// and no tile is filled.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heddle/kernels/cpu/step_attention.cc"
#include "heddle/kernels/step_attention.h"

#include "heddle/base/parallel.h"
#include "heddle/kernels/cpu/scratch.h"
#include "heddle/kernels/cpu/targets.h"
#include "hwy/foreach_target.h"
// after foreach_target.h
#include "heddle/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heddle::cpu::HWY_NAMESPACE {
namespace {

// f(column, part) is a summand of each lane. returns: the sum over a row of `width`
template <class F>
HWY_INLINE float sum_of_row(int64_t width, const F& f) {
  Chains sum(zero());
  for_columns_in_chains(width, [&](int64_t c, auto part, int chain) HWY_ATTR {
    sum.v[chain] = hn::Add(sum.v[chain], keep(f(c, part), zero(), part));
  });
  return sum.sum();
}

template <Scoring kScoring, class T>
HWY_INLINE float score_of(const StepAttention& a, int64_t row, int64_t key) {
  const int64_t d = a.k.width;
  const auto q = at<T>(a.queries, row), k = at<T>(a.k, key);
  const float sum = sum_of_row(d, [&](int64_t c, auto part) HWY_ATTR {
    const Vec qs = load(offset(q, c), part), ks = load(offset(k, c), part);
    if constexpr (kScoring == Scoring::dot) {
      return hn::Mul(qs, ks);
    } else if constexpr (kScoring == Scoring::additive) {
      return hn::Mul(load(a.score + c, part), tanh_vec(hn::Add(qs, ks)));
    } else {
      return hn::MulAdd(load(a.score + c, part), qs, hn::Mul(load(a.score + d + c, part), ks));
    }
  });
  return kScoring == Scoring::dot ? a.scale * sum : sum;
}

// softmax in place.
HWY_INLINE void softmax_of(float* w, int64_t count) {
  const Vec largest = splat(max_row(w, count));
  Chains sum(zero());
  for_columns_in_chains(count, [&](int64_t c, auto part, int chain) HWY_ATTR {
    const Vec e = keep(exp_normal(hn::Sub(load(w + c, part), largest)), zero(), part);
    store(e, w + c, part);
    sum.v[chain] = hn::Add(sum.v[chain], e);
  });
  const Vec total = splat(sum.sum());
  for_columns(count, [&](int64_t c, auto part)
                         HWY_ATTR { store(hn::Div(load(w + c, part), total), w + c, part); });
}

HWY_INLINE float gate_of(float logit) { return hn::GetLane(sigmoid_vec(splat(logit))); }

template <Scoring kScoring, class T>
HWY_INLINE void attend_row(const StepAttentionArgs& args, int64_t i) {
  const StepAttention& a = args.attention;
  const int64_t row = args.rows[i], first = a.offsets[args.sources[i]];
  const int64_t count = a.offsets[args.sources[i] + 1] - first;
  for_columns(args.q.width, [&](int64_t c, auto part) HWY_ATTR {
    Vec q = load(at<T>(args.q, i, c), part);
    if (args.asked.data != nullptr) q = hn::Add(q, load(at<T>(args.asked, row, c), part));
    store(q, at<T>(a.queries, row, c), part);
  });
  float* const w = a.weights + a.places[row];
  for (int64_t j = 0; j < count; ++j) w[j] = score_of<kScoring, T>(a, row, a.key_row(first + j));
  if (count > 0) softmax_of(w, count);
  if (a.gates != nullptr) a.gates[row] = gate_of(args.gate_logits[i]);
  const Vec gate = splat(a.gates == nullptr ? 1.0f : a.gates[row]);
  for_columns(args.context.width, [&](int64_t c, auto part) HWY_ATTR {
    Vec sum = zero();
    for (int64_t j = 0; j < count; ++j) {
      sum = hn::MulAdd(splat(w[j]), load(at<T>(a.v, a.key_row(first + j), c), part), sum);
    }
    const Vec y = hn::Mul(gate, sum);
    store(y, at<T>(args.context, i, c), part);
    store(y, at<T>(args.contexts, row, c), part);
  });
}

// Column c of the slope of the scores of a query and a key by the query (kOfKey: by the key).
template <Scoring kScoring, bool kOfKey, class T, class Part>
HWY_INLINE Vec slope_of(const StepAttention& a, int64_t row, int64_t key, int64_t c, Part part) {
  if constexpr (kScoring == Scoring::linear) {
    return load(a.score + (kOfKey ? a.k.width + c : c), part);
  } else if constexpr (kScoring == Scoring::dot) {
    const Vec other =
        kOfKey ? load(at<T>(a.queries, row, c), part) : load(at<T>(a.k, key, c), part);
    return hn::Mul(splat(a.scale), other);
  } else {
    const Vec t =
        tanh_vec(hn::Add(load(at<T>(a.queries, row, c), part), load(at<T>(a.k, key, c), part)));
    return hn::Mul(load(a.score + c, part), hn::NegMulAdd(t, t, splat(1.0f)));
  }
}

template <Scoring kScoring, class T>
HWY_INLINE void attend_backward_row(const StepAttentionBackwardArgs& b, int64_t i) {
  const StepAttention& a = b.attention;
  const int64_t row = b.rows[i], first = a.offsets[b.sources[i]];
  const int64_t count = a.offsets[b.sources[i] + 1] - first, place = a.places[row];
  for_columns(a.v.width, [&](int64_t c, auto part) HWY_ATTR {
    Vec d = load(b.dcontext.row<float>(i) + c, part);
    if (b.dy.data != nullptr) d = hn::Add(d, load(at<T>(b.dy, row, c), part));
    store(d, at<T>(b.dcontexts, row, c), part);
  });
  const float gate = a.gates == nullptr ? 1.0f : a.gates[row];
  const float* const w = a.weights + place;
  float* const ds = b.dscores + place;
  double mean = 0, of_gate = 0;  // a few keys, in order
  for (int64_t j = 0; j < count; ++j) {
    const int64_t key = a.key_row(first + j);
    const float dw = sum_of_row(a.v.width, [&](int64_t c, auto part) HWY_ATTR {
      return hn::Mul(load(at<T>(b.dcontexts, row, c), part), load(at<T>(a.v, key, c), part));
    });
    of_gate += double{w[j]} * dw;
    ds[j] = b.dweights == nullptr ? gate * dw : std::fma(gate, dw, b.dweights[place + j]);
    mean += double{w[j]} * ds[j];
  }
  for (int64_t j = 0; j < count; ++j) ds[j] = static_cast<float>(w[j] * (ds[j] - mean));
  if (a.gates != nullptr) {
    b.dgate_logits[row] = static_cast<float>(of_gate * gate * (1 - double{gate}));
  }
  for_columns(b.dq.width, [&](int64_t c, auto part) HWY_ATTR {
    Vec sum = zero();
    for (int64_t j = 0; j < count; ++j) {
      const Vec slope = slope_of<kScoring, false, T>(a, row, a.key_row(first + j), c, part);
      sum = hn::MulAdd(splat(ds[j]), slope, sum);
    }
    store(sum, at<T>(b.dq, i, c), part);
    store(sum, at<T>(b.dqueries, row, c), part);
  });
}

// The gradient of one key, and what score weights get by it.
template <Scoring kScoring, class T>
HWY_INLINE void key_backward(const StepAttentionSourcesArgs& b, int64_t s, int64_t key,
                             float* dscore) {
  const StepAttention& a = b.attention;
  const int64_t d = a.k.width, begin = b.row_offsets[s], end = b.row_offsets[s + 1];
  const auto of = [&](const float* pairs, int64_t r)
                      HWY_ATTR { return pairs[a.places[r] + key - a.offsets[s]]; };
  for_columns(d, [&](int64_t c, auto part) HWY_ATTR {
    Vec dk = zero(), first = zero(), second = zero();
    for (int64_t r = begin; r < end; ++r) {
      const Vec ds = splat(of(b.dscores, r));
      if constexpr (kScoring == Scoring::additive) {
        const Vec t =
            tanh_vec(hn::Add(load(at<T>(a.queries, r, c), part), load(at<T>(a.k, key, c), part)));
        dk = hn::MulAdd(ds, hn::NegMulAdd(t, t, splat(1.0f)), dk);
        first = hn::MulAdd(ds, t, first);
      } else {
        dk = hn::MulAdd(ds, slope_of<kScoring, true, T>(a, r, key, c, part), dk);
        first = hn::MulAdd(ds, load(at<T>(a.queries, r, c), part), first);
        second = hn::MulAdd(ds, load(at<T>(a.k, key, c), part), second);
      }
    }
    if constexpr (kScoring == Scoring::additive) dk = hn::Mul(dk, load(a.score + c, part));
    store(dk, at<T>(b.dk, key, c), part);
    if constexpr (kScoring != Scoring::dot) {
      store(hn::Add(first, load(dscore + c, part)), dscore + c, part);
    }
    if constexpr (kScoring == Scoring::linear) {
      store(hn::Add(second, load(dscore + d + c, part)), dscore + d + c, part);
    }
  });
}

template <class T>
HWY_INLINE void value_backward(const StepAttentionSourcesArgs& b, int64_t s, int64_t key) {
  const StepAttention& a = b.attention;
  for_columns(a.v.width, [&](int64_t c, auto part) HWY_ATTR {
    Vec sum = zero();
    for (int64_t r = b.row_offsets[s]; r < b.row_offsets[s + 1]; ++r) {
      const float w = a.weights[a.places[r] + key - a.offsets[s]];
      const Vec weight = splat(a.gates == nullptr ? w : w * a.gates[r]);
      sum = hn::MulAdd(weight, load(at<T>(b.dcontexts, r, c), part), sum);
    }
    store(sum, at<T>(b.dv, key, c), part);
  });
}

template <Scoring kScoring, class T>
HWY_INLINE void source_backward(const StepAttentionSourcesArgs& b, int64_t s) {
  const StepAttention& a = b.attention;
  float* const dscore = b.dscore.data == nullptr ? nullptr : b.dscore.row<float>(s);
  for (int64_t c = 0; c < b.dscore.width; ++c) dscore[c] = 0;
  for (int64_t key = a.offsets[s]; key < a.offsets[s + 1]; ++key) {
    key_backward<kScoring, T>(b, s, key, dscore);
    value_backward<T>(b, s, key);
  }
}

// Calls f.operator()<scoring>().
template <class F>
void visit_scoring(Scoring scoring, const F& f) {
  switch (scoring) {
    case Scoring::dot: return f.template operator()<Scoring::dot>();
    case Scoring::additive: return f.template operator()<Scoring::additive>();
    case Scoring::linear: return f.template operator()<Scoring::linear>();
  }
}

// Calls row.operator()<scoring, T>(i) for each of n.
template <class F, class... R>
void for_each_of(int64_t n, Scoring scoring, const F& row, const R&... rows) {
  visit_scoring(scoring, [&]<Scoring kScoring>() {
    visit_rows(
        [&]<class T>() {
          parallel_for(n, [&](int64_t i) { row.template operator()<kScoring, T>(i); });
        },
        rows...);
  });
}

}  // namespace

void step_attention_impl(const StepAttentionArgs& args) {
  const StepAttention& a = args.attention;
  for_each_of(
      args.context.rows, a.scoring,
      [&]<Scoring kScoring, class T>(int64_t i) { attend_row<kScoring, T>(args, i); }, a.k, a.v,
      a.queries, args.q, args.asked, args.contexts, args.context);
}

void step_attention_backward_impl(const StepAttentionBackwardArgs& b) {
  const StepAttention& a = b.attention;
  for_each_of(
      b.dq.rows, a.scoring,
      [&]<Scoring kScoring, class T>(int64_t i) { attend_backward_row<kScoring, T>(b, i); }, a.k,
      a.v, a.queries, b.dy, b.dcontexts, b.dq, b.dqueries);
}

void step_attention_sources_impl(const StepAttentionSourcesArgs& b) {
  const StepAttention& a = b.attention;
  for_each_of(
      b.sources, a.scoring,
      [&]<Scoring kScoring, class T>(int64_t s) { source_backward<kScoring, T>(b, s); }, a.k,
      a.queries, b.dcontexts, b.dk, b.dv);
}

}  // namespace heddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heddle::cpu {
HWY_EXPORT(step_attention_impl);
HWY_EXPORT(step_attention_backward_impl);
HWY_EXPORT(step_attention_sources_impl);
}  // namespace heddle::cpu

namespace heddle {

StepAttentionKernels StepAttentionKernels::of_cpu() {
  return {HEDDLE_CPU_KERNEL(step_attention), HEDDLE_CPU_KERNEL(step_attention_backward),
          HEDDLE_CPU_KERNEL(step_attention_sources)};
}

}  // namespace heddle
#endif
