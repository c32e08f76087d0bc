// The plain definitions of recurrent ops.
#include "tests/ops/recurrent_references.h"

#include <cmath>

#include "heddle/ops/elementwise.h"
#include "heddle/ops/matmul.h"
#include "heddle/ops/moe.h"
#include "heddle/ops/reduce.h"
#include "heddle/ops/scoring.h"
#include "heddle/ops/shape.h"

namespace heddle {
namespace {

Tensor sigmoid(const Tensor& x) {  // (1 + tanh(x / 2)) / 2
  const Tensor t = activation(Activation::tanh, scale(x, 0.5f));
  return scale(add(t, Tensor::full(x.shape(), 1, x.dtype())), 0.5f);
}

Tensor tanh_of(const Tensor& x) { return activation(Activation::tanh, x); }

Tensor row_of(const Tensor& x, int64_t row, int64_t width, DType dtype) {
  return x.defined() ? slice(x, 0, row, 1) : Tensor::zeros({1, width}, dtype);
}

// x: [1, gates h] pre-activations of the input, s: of the state
CellState next_state(RecurrentCell cell, const Tensor& x, const Tensor& s,
                     const CellState& before) {
  const int64_t h = before.h.size(1);
  const auto part = [h](const Tensor& all, int64_t gate) { return slice(all, 1, gate * h, h); };
  const Tensor both = add(x, s);
  if (cell == RecurrentCell::tanh || cell == RecurrentCell::relu) {
    return {activation(cell == RecurrentCell::tanh ? Activation::tanh : Activation::relu, both)};
  }
  if (cell == RecurrentCell::gru) {
    const Tensor r = sigmoid(part(both, 0)), z = sigmoid(part(both, 1));
    const Tensor n = tanh_of(add(part(x, 2), mul(r, part(s, 2))));
    return {add(n, mul(z, add(before.h, scale(n, -1))))};
  }
  const Tensor c = add(mul(sigmoid(part(both, 1)), before.c),
                       mul(sigmoid(part(both, 0)), tanh_of(part(both, 2))));
  return {mul(sigmoid(part(both, 3)), tanh_of(c)), c};
}

CellState state_at_beginning(const CellState& begin, int64_t sequence, int64_t h, DType dtype) {
  return {row_of(begin.h, sequence, h, dtype), row_of(begin.c, sequence, h, DType::f32)};
}

Tensor joined(const std::vector<Tensor>& parts) { return concat(parts, 0); }

}  // namespace

Recurrence recurrence_reference(const Tensor& x, const StateWeights& w, const CellState& begin,
                                const Segments& segments, const RecurrenceOptions& o) {
  const int64_t h = w.w.size(1);
  std::vector<Tensor> states(segments.rows()), last_h, last_c;
  for (int64_t s = 0; s < segments.count(); ++s) {
    CellState state = state_at_beginning(begin, s, h, x.dtype());
    for (int64_t t = 0; t < segments.length(s); ++t) {
      const int64_t row = o.is_reversed ? segments.end(s) - 1 - t : segments.begin(s) + t;
      state = next_state(o.cell, slice(x, 0, row, 1), linear(state.h, w.w, w.bias), state);
      states[row] = state.h;
    }
    last_h.push_back(state.h);
    last_c.push_back(state.c);
  }
  Recurrence y{.h = joined(states), .c = {}, .last = {joined(last_h), {}}};
  if (o.cell == RecurrentCell::lstm) y.last.c = joined(last_c);
  return y;
}

AttentiveRecurrence attentive_reference(const Tensor& x, const AttentiveWeights& w,
                                        const AttendedSources& sources, const CellState& begin,
                                        const Segments& segments, const AttentiveOptions& o) {
  const int64_t h = w.state.w.size(1);
  const AttentionOptions scoring{.scale = o.scale, .scoring = o.scoring, .score_weight = w.score};
  std::vector<Tensor> states, contexts, weights, last_h, last_c;
  for (int64_t s = 0; s < segments.count(); ++s) {
    CellState state = state_at_beginning(begin, s, h, x.dtype());
    const auto of_source = [&](const Tensor& rows) {
      return slice(rows, 0, sources.keys->begin(s), sources.keys->length(s));
    };
    for (int64_t row = segments.begin(s); row < segments.end(s); ++row) {
      Tensor q = w.query.defined() ? linear(state.h, w.query, {}) : state.h;
      if (sources.asked.defined()) q = add(q, slice(sources.asked, 0, row, 1));
      const Tensor a = softmax(head_scores(q, of_source(sources.k), scoring, 0));
      Tensor context = matmul(a, of_source(sources.v));
      if (w.gate.defined()) {
        const Tensor gate = sigmoid(linear(state.h, w.gate, w.gate_bias));
        context = scale_rows(context, reshape(gate, {1}));
      }
      const Tensor input = add(slice(x, 0, row, 1), linear(context, w.context, {}));
      state = next_state(o.cell, input, linear(state.h, w.state.w, w.state.bias), state);
      states.push_back(state.h), contexts.push_back(context);
      weights.push_back(reshape(a, {a.elements()}));
    }
    last_h.push_back(state.h), last_c.push_back(state.c);
  }
  AttentiveRecurrence y{.states = {joined(states), {}, {joined(last_h), {}}},
                        .contexts = joined(contexts),
                        .weights = joined(weights),
                        .queries = {}};
  if (o.cell == RecurrentCell::lstm) y.states.last.c = joined(last_c);
  return y;
}

}  // namespace heddle
