// Attention inside the loop of cells; what sums over all steps is computed behind the loop.
#include "heddle/ops/recurrent/attentive_recurrence.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "heddle/ops/elementwise.h"
#include "heddle/ops/recurrent/cell_loop.h"

namespace heddle {
namespace {

Tensor detached(const Tensor& x) { return x.defined() ? x.detached() : Tensor(); }

// What a group's steps write, one after the other.
struct GroupMemory {
  Tensor q, context, added;  // forward
  Tensor dcontext, dq, dx;   // backward
  Tensor gate;
  std::vector<int32_t> sources;
};

// Attention beside the cells of a loop.
class AttentiveLoop {
 public:
  AttentiveLoop(const Tensor& x, const AttentiveWeights& weights, const AttendedSources& sources,
                const CellState& begin, const Segments& segments, const AttentiveOptions& options);

  AttentiveRecurrence forward(bool keeps);
  /// Of the inputs, in the order of inputs().
  Grads backward(std::span<const Tensor> dys) const;

 private:
  // What the steps of a backward pass read and write.
  struct Backward {
    Tensor dy, dweights;                          // from outside
    Tensor dcontexts, dscores, dqueries, dgates;  // of all rows
    uint64_t context_constant, query_constant;
  };
  StepAttention attention() const;
  std::vector<GroupMemory> memories() const;
  GroupMemory& of(const StepGroup& group, std::vector<GroupMemory>& all) const {
    return all[static_cast<size_t>(&group - loop_.plan().groups.data())];
  }
  Rows attend(const LoopStep& step, const Rows& state, GroupMemory& memory,
              const std::array<uint64_t, 2>& constants) const;
  void attend_back(const LoopStep& step, const CellLoop::StepGradients& d, GroupMemory& memory,
                   const Backward& b) const;
  Grads gradients(CellLoop::Gradients d, const Backward& b) const;

  AttentiveWeights w_;
  AttentiveOptions options_;
  AttendedSources sources_;
  Segments keys_, segments_;
  std::vector<int32_t> key_rows_, source_of_;
  std::vector<int64_t> places_;
  Tensor score_;  // f32
  Tensor queries_, contexts_, weights_, gates_;
  CellLoop loop_;
};

void check_weights(const Tensor& x, const AttentiveWeights& w, const AttendedSources& s,
                   Scoring scoring) {
  const int64_t h = w.state.w.size(1), d = s.k.size(1), e = s.v.size(1);
  const int64_t score = scoring == Scoring::dot ? 0 : scoring == Scoring::linear ? 2 * d : d;
  check(w.context.shape() == Shape{x.size(1), e} && s.k.size(0) == s.v.size(0) &&
            (w.query.defined() ? w.query.shape() == Shape{d, h} : d == h),
        ErrorKind::shape,
        "attentive recurrence: keys are {}, values {}, x is {}, a state {} wide; then `context` "
        "must be [{}, {}] and `query` [{}, {}]",
        s.k.shape(), s.v.shape(), x.shape(), h, x.size(1), e, d, h);
  check(score == 0 || (w.score.defined() && w.score.shape() == Shape{1, score}), ErrorKind::shape,
        "attentive recurrence: these scores need weights [1, {}]", score);
  check(!w.gate.defined() || w.gate.shape() == Shape{1, h}, ErrorKind::shape,
        "attentive recurrence: the gate must be [1, {}]", h);
  check(s.k.dtype() == x.dtype() && s.v.dtype() == x.dtype(), ErrorKind::shape,
        "attentive recurrence: keys are {}, values {}, x {}; they must be of one dtype",
        dtype_name(s.k.dtype()), dtype_name(s.v.dtype()), dtype_name(x.dtype()));
  check(!s.asked.defined() ||
            (s.asked.shape() == Shape{x.size(0), d} && s.asked.dtype() == x.dtype()),
        ErrorKind::shape,
        "attentive recurrence: what tokens ask is {}; it must be [{}, {}] and {}, as x and the "
        "keys are",
        s.asked.shape(), x.size(0), d, dtype_name(x.dtype()));
}

// Where the weights of each row begin, and the end of all.
std::vector<int64_t> places_of(const Segments& segments, const Segments& keys,
                               std::span<const int32_t> source_of) {
  std::vector<int64_t> places = {0};
  for (int64_t s = 0; s < segments.count(); ++s) {
    for (int64_t r = segments.begin(s); r < segments.end(s); ++r) {
      places.push_back(places.back() + keys.length(source_of[s]));
    }
  }
  return places;
}

AttentiveLoop::AttentiveLoop(const Tensor& x, const AttentiveWeights& weights,
                             const AttendedSources& sources, const CellState& begin,
                             const Segments& segments, const AttentiveOptions& options)
    : w_(weights),
      options_(options),
      sources_(sources),
      keys_(*sources.keys),
      segments_(segments),
      key_rows_(sources.key_rows.begin(), sources.key_rows.end()),
      source_of_(sources.source_of.begin(), sources.source_of.end()),
      loop_(x, weights.state, begin, segments, {.cell = options.cell}) {
  check_weights(x, weights, sources, options.scoring);
  for (Tensor* t : {&w_.state.w, &w_.state.bias, &w_.context, &w_.query, &w_.score, &w_.gate,
                    &w_.gate_bias, &sources_.k, &sources_.v, &sources_.asked}) {
    *t = heddle::detached(*t);
  }
  const int64_t n = segments.count();
  for (int64_t s = std::ssize(source_of_); s < n; ++s) {
    source_of_.push_back(static_cast<int32_t>(s));
  }
  const int64_t rows = key_rows_.empty() ? sources.k.size(0) : std::ssize(key_rows_);
  const bool is_own = sources.source_of.empty();  // sequence i asks source i
  check(keys_.rows() == rows && std::ssize(source_of_) == n && (!is_own || keys_.count() == n) &&
            std::all_of(source_of_.begin(), source_of_.end(),
                        [&](int32_t s) { return s >= 0 && s < keys_.count(); }),
        ErrorKind::shape,
        "attentive recurrence: {} sequences ask {} sources of {} keys, but there are {} keys", n,
        keys_.count(), keys_.rows(), rows);
  places_ = places_of(segments, keys_, source_of_);
  if (options.scoring != Scoring::dot) {
    const NoGrad off;
    score_ = cast(w_.score, DType::f32).to_contiguous();
  }
  if (options_.scale == 0) options_.scale = 1 / std::sqrt(static_cast<float>(sources.k.size(1)));
}

StepAttention AttentiveLoop::attention() const {
  return {.scoring = options_.scoring,
          .scale = options_.scale,
          .score = score_.defined() ? score_.data<float>() : nullptr,
          .k = sources_.k.rows(),
          .v = sources_.v.rows(),
          .offsets = keys_.offsets().data(),
          .key_rows = key_rows_.empty() ? nullptr : key_rows_.data(),
          .queries = queries_.rows(),
          .places = places_.data(),
          .weights = weights_.data<float>(),
          .gates = gates_.defined() ? gates_.data<float>() : nullptr};
}

std::vector<GroupMemory> AttentiveLoop::memories() const {
  std::vector<GroupMemory> all;
  for (const StepGroup& group : loop_.plan().groups) {
    GroupMemory& memory = all.emplace_back();
    for (int64_t i = 0; i < group.count; ++i) {
      memory.sources.push_back(source_of_[loop_.plan().order[group.first + i]]);
    }
    const DType dtype = sources_.k.dtype();
    const auto make = [&](int64_t width, DType type) {
      return Tensor::empty({group.count, width}, type);
    };
    const int64_t gates = w_.state.w.size(0), e = sources_.v.size(1), d = sources_.k.size(1);
    memory.q = make(d, dtype), memory.context = make(e, dtype);
    memory.added = make(gates, DType::f32), memory.dcontext = make(e, DType::f32);
    memory.dq = make(d, dtype), memory.dx = make(gates, dtype);
    memory.gate = make(1, DType::f32);
  }
  return all;
}

AttentiveRecurrence AttentiveLoop::forward(bool keeps) {
  const int64_t rows = segments_.rows();
  const DType dtype = sources_.k.dtype();
  queries_ = Tensor::empty({rows, sources_.k.size(1)}, dtype);
  contexts_ = Tensor::empty({rows, sources_.v.size(1)}, dtype);
  weights_ = Tensor::empty({places_.back()}, DType::f32);
  if (w_.gate.defined()) gates_ = Tensor::empty({rows}, DType::f32);
  std::vector<GroupMemory> all = memories();
  const PackedFactor context(w_.context_constant), query(w_.query_constant);
  AttentiveRecurrence y;
  y.states = loop_.forward(keeps, [&](const LoopStep& step, const Rows& state) {
    return attend(step, state, of(step.group, all), {context.constant(), query.constant()});
  });
  y.contexts = contexts_, y.weights = weights_, y.queries = queries_, y.gates = gates_;
  return y;
}

// returns: pre-activations of the step's contexts
Rows AttentiveLoop::attend(const LoopStep& step, const Rows& state, GroupMemory& memory,
                           const std::array<uint64_t, 2>& constants) const {
  const int64_t n = step.running();
  const auto some = [n](const Tensor& x) { return x.rows().slice(0, n); };
  Rows q = state;
  if (w_.query.defined()) {
    q = some(memory.q);
    kernels().gemm({.a = state,
                    .b = w_.query.rows(),
                    .c = q,
                    .transpose_b = true,
                    .constant_b = constants[1],
                    .int8 = w_.state.int8});
  }
  if (w_.gate.defined()) {
    kernels().gemm({.a = state,
                    .b = w_.gate.rows(),
                    .c = some(memory.gate),
                    .bias = w_.gate_bias.defined() ? w_.gate_bias.data<float>() : nullptr,
                    .transpose_b = true});
  }
  kernels().step_attention({.attention = attention(),
                            .rows = step.rows(),
                            .sources = memory.sources.data(),
                            .q = q,
                            .asked = sources_.asked.defined() ? sources_.asked.rows() : Rows(),
                            .gate_logits = memory.gate.data<float>(),
                            .contexts = contexts_.rows(),
                            .context = some(memory.context)});
  kernels().gemm({.a = some(memory.context),
                  .b = w_.context.rows(),
                  .c = some(memory.added),
                  .transpose_b = true,
                  .constant_b = constants[0],
                  .int8 = w_.state.int8});
  return some(memory.added);
}

Grads AttentiveLoop::backward(std::span<const Tensor> dys) const {
  std::vector<GroupMemory> all = memories();
  const PackedFactor context(0), query(0);
  const Tensor dweights = dys[2].defined() ? dys[2].to_contiguous() : Tensor();
  Backward b{.dy = dys[1],
             .dweights = dweights,
             .dcontexts = empty_like(contexts_),
             .dscores = empty_like(weights_),
             .dqueries = empty_like(queries_),
             .dgates = gates_.defined() ? empty_like(gates_) : Tensor(),
             .context_constant = context.constant(),
             .query_constant = query.constant()};
  CellLoop::Gradients d =
      loop_.backward(dys[0], {dys[3], dys.size() > 4 ? dys[4] : Tensor()},
                     [&](const LoopStep& step, const CellLoop::StepGradients& of_step) {
                       attend_back(step, of_step, of(step.group, all), b);
                     });
  return gradients(std::move(d), b);
}

void AttentiveLoop::attend_back(const LoopStep& step, const CellLoop::StepGradients& d,
                                GroupMemory& memory, const Backward& b) const {
  const int64_t n = step.running();
  const auto some = [n](const Tensor& x) { return x.rows().slice(0, n); };
  Rows dx = d.dproduct;
  if (options_.cell == RecurrentCell::gru) {  // its block of n is another one
    dx = some(memory.dx);
    kernels().gather_rows(d.dx, step.rows(), dx);
  }
  kernels().gemm({.a = dx,
                  .b = w_.context.rows(),
                  .c = some(memory.dcontext),
                  .constant_b = b.context_constant});
  kernels().step_attention_backward(
      {.attention = attention(),
       .rows = step.rows(),
       .sources = memory.sources.data(),
       .dcontext = some(memory.dcontext),
       .dy = b.dy.defined() ? b.dy.rows() : Rows(),
       .dweights = b.dweights.defined() ? b.dweights.data<float>() : nullptr,
       .dcontexts = b.dcontexts.rows(),
       .dscores = b.dscores.data<float>(),
       .dq = some(memory.dq),
       .dqueries = b.dqueries.rows(),
       .dgate_logits = b.dgates.defined() ? b.dgates.data<float>() : nullptr});
  if (w_.query.defined()) {
    kernels().gemm({.a = some(memory.dq),
                    .b = w_.query.rows(),
                    .c = d.dh,
                    .accumulate = true,
                    .constant_b = b.query_constant});
  } else {
    kernels().add(d.dh, some(memory.dq), d.dh);
  }
  if (!w_.gate.defined()) return;
  for (int64_t i = 0; i < n; ++i) {
    const float dlogit = b.dgates.data<float>()[step.rows()[i]];
    kernels().axpby(dlogit, w_.gate.rows(), 1, d.dh.slice(i, 1));
  }
}

// a ᵀ b over all rows, f32.
Tensor sum_of_products(const Tensor& a, const Tensor& b) {
  Tensor y = Tensor::empty({a.size(1), b.size(1)}, DType::f32);
  kernels().gemm({.a = a.rows(), .b = b.rows(), .c = y.rows(), .transpose_a = true});
  return y;
}

Grads AttentiveLoop::gradients(CellLoop::Gradients d, const Backward& b) const {
  const NoGrad off;
  const Tensor before = loop_.states_before();
  Tensor dk = empty_like(sources_.k), dv = empty_like(sources_.v), of_score, dscore, dquery;
  if (score_.defined()) {
    of_score = Tensor::empty({keys_.count(), score_.size(1)}, DType::f32);
    dscore = Tensor::empty(score_.shape(), DType::f32);
  }
  kernels().step_attention_sources({.attention = attention(),
                                    .row_offsets = segments_.offsets().data(),
                                    .sources = keys_.count(),
                                    .dcontexts = b.dcontexts.rows(),
                                    .dscores = b.dscores.data<float>(),
                                    .dk = dk.rows(),
                                    .dv = dv.rows(),
                                    .dscore = of_score.defined() ? of_score.rows() : Rows()});
  if (score_.defined()) kernels().sum_columns(of_score.rows(), dscore.data<float>());
  if (w_.query.defined()) dquery = sum_of_products(b.dqueries, before);
  Tensor dgate, dgate_bias;
  if (w_.gate.defined()) {
    const Tensor dlogits = b.dgates.view({segments_.rows(), 1});
    dgate = sum_of_products(cast(dlogits, before.dtype()), before);
    if (w_.gate_bias.defined()) {
      dgate_bias = Tensor::empty({1}, DType::f32);
      kernels().sum_columns(dlogits.rows(), dgate_bias.data<float>());
    }
  }
  return {d.x,
          d.w,
          d.bias,
          sum_of_products(d.x, contexts_),
          dquery,
          dscore,
          dgate,
          dgate_bias,
          dk,
          dv,
          d.begin.h,
          d.begin.c,
          sources_.asked.defined() ? b.dqueries : Tensor()};
}

}  // namespace

AttentiveRecurrence attentive_recurrence(const Tensor& x, const AttentiveWeights& w,
                                         const AttendedSources& sources, const CellState& begin,
                                         const Segments& segments,
                                         const AttentiveOptions& options) {
  const std::vector<Tensor> inputs = {x,       w.state.w, w.state.bias, w.context, w.query,
                                      w.score, w.gate,    w.gate_bias,  sources.k, sources.v,
                                      begin.h, begin.c,   sources.asked};
  bool keeps = false;
  for (const Tensor& input : inputs) keeps = keeps || needs_grad({&input});
  check(!keeps || (sources.key_rows.empty() && sources.source_of.empty() && !w.state.int8),
        ErrorKind::internal, "attentive recurrence: cached keys and int8 have no gradient");
  const auto loop = std::make_shared<AttentiveLoop>(x, w, sources, begin, segments, options);
  AttentiveRecurrence y = loop->forward(keeps);
  const BackwardMany backward = [loop](std::span<const Tensor> dys) { return loop->backward(dys); };
  Recurrence& s = y.states;
  if (s.last.c.defined()) {
    record_many("attentive_recurrence", inputs,
                {&s.h, &y.contexts, &y.weights, &s.last.h, &s.last.c}, backward);
  } else {
    record_many("attentive_recurrence", inputs, {&s.h, &y.contexts, &y.weights, &s.last.h},
                backward);
  }
  return y;
}

}  // namespace heddle
