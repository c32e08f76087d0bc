// Stacks of recurrent layers, one- or two-way, over whole sequences or token by token.
#pragma once

#include "heddle/nn/layers.h"
#include "heddle/nn/token_rows.h"
#include "heddle/ops/recurrent/recurrence.h"

namespace heddle::nn {

/// A cell by its config value: rnn_tanh, rnn_relu, gru or lstm. Errors: data for another name.
RecurrentCell cell_of(const std::string& name);
std::vector<std::string> cell_names();

/// The parameters of one direction of a layer, named as PyTorch names them: weight_ih_l0
/// [gates h, in], weight_hh_l0 [gates h, h], bias_ih_l0, bias_hh_l0 [gates h]; `_reverse` behind
/// those of the way back. All begin uniform in ±1 / sqrt(h), as in PyTorch.
class CellWeights {
 public:
  struct Options {
    RecurrentCell cell = RecurrentCell::lstm;
    int64_t in = 0, width = 0;
    bool bias = true;
    bool opens_forget_gates = false;  ///< LSTM: their bias begins at 1 (Jozefowicz et al. 2015)
  };
  /// suffix: "_l0", "_l1_reverse"
  CellWeights(const Scope& s, const std::string& suffix, const Options& options);

  /// Pre-activations of the input, all rows in one product. x: [rows, in]
  Tensor input(const Tensor& x, const Run& run) const { return input_(x, run); }
  StateWeights state(const Run& run) const;
  /// The states before the tokens of a pass that continue the sequences of a cache; those at the
  /// beginning (undefined: zeros) where a sequence has no tokens yet. A row of the cache is the
  /// state behind a token, [h, c] in f32.
  CellState states_before(const RowCache& states, const CachedKeys& tokens, const CellState& begin,
                          const Run& run) const;

 private:
  bool has_c_;
  Linear input_;
  Parameter* weight_;
  Parameter* bias_ = nullptr;
};

/// Keeps the states behind the pass's tokens in such rows.
void keep_states(RowCache& states, const CachedKeys& tokens, const Recurrence& pass);

/// Layers one above the other: each reads the states of the one below.
class RecurrentLayers {
 public:
  struct Options {
    RecurrentCell cell = RecurrentCell::lstm;
    int64_t in = 0, width = 0, layers = 1;
    bool is_two_way = false;  ///< states of both ways side by side
    double dropout = 0;       ///< of what a layer reads from the one below
    bool bias = true;
    bool opens_forget_gates = false;
    int64_t first = 0;  ///< number of the lowest layer: in names, and in a KvCache
  };
  RecurrentLayers(const Scope& s, const Options& options);

  struct Result {
    Tensor h;                     ///< [rows, ways width] of the uppermost layer
    std::vector<CellState> last;  ///< [layers ways] behind what each way of each layer reads last
  };
  /// x: [rows, in], a row for each of `tokens`; begin: empty, or [layers ways]. Tokens that
  /// continue the sequences of a cache keep their states there, and get the rows of a pass over the
  /// whole sequences, bit for bit, without gradient.
  /// Errors: internal if two-way layers are to continue sequences.
  Result operator()(const Tensor& x, const TokenRows& tokens, std::span<const CellState> begin,
                    const Run& run) const;

 private:
  Recurrence pass(const Tensor& x, const TokenRows& tokens, size_t number, const CellState& begin,
                  const Run& run) const;
  int64_t ways() const { return options_.is_two_way ? 2 : 1; }

  std::string name_;
  Options options_;
  std::vector<CellWeights> weights_;  // [layers ways]
};

}  // namespace heddle::nn
