// Recurrence whose cell is also given a context, which the state before asks of a source.
#pragma once

#include <span>

#include "heddle/ops/recurrent/recurrence.h"

namespace heddle {

/// The matrices of a step, each of the dtype of the input part; `constant`s: see StateWeights,
/// whose int8 is that of the context's and the query's too.
struct AttentiveWeights {
  StateWeights state;
  Tensor context;  ///< [gates h, e] pre-activations of the context
  uint64_t context_constant = 0;
  Tensor query = {};  ///< [d, h]; undefined: the state itself asks, d = h
  uint64_t query_constant = 0;
  Tensor score = {};      ///< [1, d] of additive, [1, 2 d] of linear scores
  Tensor gate = {};       ///< [1, h]; undefined: contexts are taken whole
  Tensor gate_bias = {};  ///< [1] f32
};

/// Keys and values of the sources that sequences ask.
struct AttendedSources {
  Tensor k, v;                              ///< [any, d], [any, e], of the dtype of the input part
  const Segments* keys = nullptr;           ///< of each source
  std::span<const int32_t> key_rows = {};   ///< [keys->rows()] rows of k and v; empty: in order
  std::span<const int32_t> source_of = {};  ///< [sequences]; empty: sequence i asks source i
  Tensor asked = {};                        ///< [rows, d] what tokens themselves ask; undefined: 0
};

struct AttentiveOptions {
  RecurrentCell cell = RecurrentCell::lstm;
  Scoring scoring = Scoring::additive;
  float scale = 0;  ///< of dot products; 0: 1 / sqrt(d)
};

struct AttentiveRecurrence {
  Recurrence states;
  Tensor contexts;  ///< [rows, e] as the cell gets them
  /// [pairs] f32, row after row the weights of its source's keys, with gradient.
  Tensor weights;
  Tensor queries;     ///< [rows, d], without gradient
  Tensor gates = {};  ///< [rows] f32, without gradient, if there are gates
};

/// e_i = score(query h_{t-1} + asked_t, k_i), a = softmax(e), c_t = gate sum_i a_i v_i,
/// h_t = cell(x_t + context c_t, state h_{t-1} + bias); gate = sigmoid(gate h_{t-1} + gate_bias).
/// x: [rows, gates h] pre-activations of the tokens, begin: states before the first token
/// A sequence has the same bits whatever stands beside it, and in whatever parts it comes.
/// Errors: shape if the sizes do not fit; internal if a gradient is wanted by key_rows or
/// source_of.
/// Source: Bahdanau et al. 2015, section 3 and appendix A; the gate: Xu et al. 2015, section 4.2.1;
/// a query that knows the token before: Sennrich et al. 2017, "Nematus", section 2.
AttentiveRecurrence attentive_recurrence(const Tensor& x, const AttentiveWeights& weights,
                                         const AttendedSources& sources, const CellState& begin,
                                         const Segments& segments, const AttentiveOptions& options);

}  // namespace heddle
