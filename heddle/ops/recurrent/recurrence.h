// Recurrence over packed sequences: cells that carry a state from token to token.
#pragma once

#include "heddle/autograd/tape.h"
#include "heddle/kernels/kernels.h"
#include "heddle/tensor/segments.h"

namespace heddle {

/// What a cell makes of the state before: pre-activations w h + bias.
struct StateWeights {
  Tensor w;          ///< [gates h, h], of the dtype of the input part; blocks as of RecurrentCell
  Tensor bias = {};  ///< [gates h] f32; undefined: none
  uint64_t constant = 0;  ///< see GemmArgs::constant_b; 0: anything, w is packed for the call
  bool int8 = false;      ///< see GemmArgs::int8; w is f32 and constant, and there is no gradient
};

/// States of sequences. Where a tensor is undefined they are zeros.
struct CellState {
  Tensor h = {};  ///< [sequences, h], of the dtype of the input part
  Tensor c = {};  ///< [sequences, h] f32, of LSTM
};

struct Recurrence {
  Tensor h;        ///< [rows, h] the state behind each token
  Tensor c = {};   ///< [rows, h] f32, of LSTM; without gradient
  CellState last;  ///< behind the last token that each sequence reads, with gradients
};

struct RecurrenceOptions {
  RecurrentCell cell = RecurrentCell::lstm;
  bool is_reversed = false;  ///< sequences are read from their last token to their first
};

/// States behind each token of each sequence: h_t = cell(x_t, w h_{t-1} + bias).
/// x: [rows, gates h] pre-activations of the input, all rows in one product    begin: the states
/// before the first token that is read; a sequence without tokens ends with them
/// A sequence has the same bits whatever stands beside it, and in whatever parts it comes.
/// Errors: shape if the sizes do not fit.
/// Source: Elman 1990; Hochreiter & Schmidhuber 1997 with forget gates (Gers et al. 2000); Cho et
/// al. 2014, with the reset gate behind the product as in PyTorch.
Recurrence recurrence(const Tensor& x, const StateWeights& weights, const CellState& begin,
                      const Segments& segments, const RecurrenceOptions& options);

}  // namespace heddle
