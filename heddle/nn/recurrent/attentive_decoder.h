// A recurrent decoder that asks a memory at every step.
#pragma once

#include <optional>

#include "heddle/nn/attention.h"
#include "heddle/nn/recurrent/recurrent_layers.h"
#include "heddle/ops/recurrent/attentive_recurrence.h"

namespace heddle::nn {

/// The lowest layer's state before a token asks the memory, and that layer gets the context beside
/// the token; layers above it are plain. Source: Bahdanau et al. 2015, section 3.1; with dot
/// products Luong et al. 2015, whose query is the state behind the token.
class AttentiveDecoder {
 public:
  struct Options {
    RecurrentCell cell = RecurrentCell::lstm;
    int64_t in = 0, width = 0;     ///< of tokens, of states
    int64_t memory_width = 0;      ///< of the memory's rows, which are the values
    int64_t attention_width = 0;   ///< of queries and keys; 0: width
    bool compares_states = false;  ///< states and memory are queries and keys: as wide, dot alone
    std::string scoring = "additive";  ///< see scoring_of()
    bool asks_by_token = false;        ///< the token itself is part of the query
    bool is_gated = false;             ///< contexts by a gate of the state (Xu et al. 2015)
    int64_t layers = 1;
    double dropout = 0;  ///< between layers
    bool bias = true;
    bool opens_forget_gates = false;
    std::string observed = {};  ///< the name that an observer is given: "cross_attentions.0"
  };
  /// Names: those of RecurrentLayers, weight_ch_l0 [gates width, memory_width] of the context,
  /// and, where there are such, query, key (with a bias), token_query, score.weight and gate.
  AttentiveDecoder(const Scope& s, const Options& options);

  struct Result {
    Tensor h;                     ///< [rows, width] of the uppermost layer
    Tensor contexts;              ///< [rows, memory_width] as the lowest layer got them
    Tensor weights, gates;        ///< see AttentiveRecurrence
    std::vector<CellState> last;  ///< [layers]
  };
  /// What is read: sequence i of the tokens asks sequence i of `source`.
  struct Source {
    const Tensor* memory = nullptr;  ///< [source rows, memory_width]
    const Segments* segments = nullptr;
  };
  /// x: [rows, in], begin: empty, or [layers]    Whole sequences.
  Result operator()(const Tensor& x, const TokenRows& tokens, const Source& source,
                    std::span<const CellState> begin, const Run& run) const;

  /// A cache's rows of a memory, keys and values: [source rows, attention_width + memory_width],
  /// or, where these are the same, the memory.
  Tensor keys_and_values(const Tensor& memory, const Run& run) const;
  /// The tokens continue the sequences of their cache, whose layers 0 .. layers - 1 keep states.
  struct CachedSource {
    const RowCache* kept = nullptr;    ///< of keys_and_values()
    const CachedKeys* keys = nullptr;  ///< segment i: rows of the tokens that ask source i
  };
  /// begin: states of sequences without tokens yet. returns: the rows of a pass over whole
  /// sequences, bit for bit. No gradient.
  Result operator()(const Tensor& x, const TokenRows& tokens, const CachedSource& source,
                    std::span<const CellState> begin, const Run& run) const;

 private:
  AttentiveWeights weights(const Run& run) const;
  Tensor asked_by(const Tensor& x, const Run& run) const {
    return token_query_ ? (*token_query_)(x, run) : Tensor();
  }
  Result above(const AttentiveRecurrence& lowest, const TokenRows& tokens,
               std::span<const CellState> begin, const Run& run) const;
  AttentiveOptions attentive_options() const;

  std::string name_;
  Options options_;
  ScoringChoice scoring_;
  CellWeights lowest_;
  Tensor keys_of(const Tensor& memory, const Run& run) const {
    return key_ ? (*key_)(memory, run) : memory;
  }

  std::optional<Linear> key_, token_query_;
  Parameter *context_, *query_ = nullptr, *score_, *gate_ = nullptr, *gate_bias_ = nullptr;
  std::optional<RecurrentLayers> above_;
};

/// Which source each sequence of the tokens asks, by whose segment its first row lies in.
std::vector<int32_t> sources_of(const Segments& tokens, const Segments& rows_of_sources);

}  // namespace heddle::nn
