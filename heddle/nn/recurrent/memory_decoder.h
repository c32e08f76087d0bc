// A recurrent decoder between the embeddings of its tokens and the output projection: the states
// that it begins with, its layers over a memory, its read-out.
#pragma once

#include <functional>

#include "heddle/nn/recurrent/attentive_decoder.h"

namespace heddle::nn {

/// What decoders of text have beside their embeddings, whatever the memory is of: an
/// AttentiveDecoder, or plain layers that are given one fixed context with each token (Cho et al.
/// 2014), the same that a bridge makes the first states of.
class MemoryDecoder {
 public:
  static constexpr const char* kFixed = "none";  ///< the scoring of a decoder without attention

  struct Options {
    RecurrentCell cell = RecurrentCell::lstm;
    int64_t in = 0, width = 0;         ///< of tokens, of states
    int64_t memory_width = 0;          ///< of the memory's rows
    std::string scoring = "additive";  ///< see scoring_of(), or kFixed
    int64_t attention_width = 0;       ///< see AttentiveDecoder::Options
    bool compares_states = false, asks_by_token = false, is_gated = false;
    int64_t layers = 1;
    double dropout = 0;  ///< between layers, and of what is read out
    bool has_bridge = true;
  };
  /// Names: those of AttentiveDecoder, or of RecurrentLayers; bridge, where there is one, and
  /// readout.
  MemoryDecoder(const Scope& s, const Options& options);

  /// A step's states become what the output projection reads, [rows, in].
  struct Result {
    Tensor x;                    ///< [rows, in]
    Tensor weights, gates = {};  ///< see AttentiveRecurrence; undefined without attention
  };
  /// Whether `summary` is read: without a bridge and with attention it is not.
  bool reads_summary() const { return bridge_ || fixed_; }
  /// x: [rows, in]; sequence i of the tokens asks sequence i of `source`
  /// summary: [sequences, memory_width] what its source is as a whole; may be undefined where it is
  /// not read    Whole sequences.
  Result operator()(const Tensor& x, const TokenRows& tokens,
                    const AttentiveDecoder::Source& source, const Tensor& summary,
                    const Run& run) const;

  /// A cache's rows of a memory.
  Tensor kept(const Tensor& memory, const Run& run) const;
  /// The memory in such rows: a view.
  Tensor memory_of(const Tensor& kept) const;
  /// The tokens continue the sequences of their cache, see AttentiveDecoder. `summary` is asked for
  /// where it is read: a bridge reads it for sequences without tokens yet. No gradient.
  Tensor operator()(const Tensor& x, const TokenRows& tokens,
                    const AttentiveDecoder::CachedSource& source,
                    const std::function<Tensor()>& summary, const Run& run) const;

 private:
  std::vector<CellState> begin_by(const Tensor& summary, const Run& run) const;
  Tensor by_fixed(const Tensor& x, const TokenRows& tokens, const Tensor& summary,
                  std::span<const CellState> begin, const Run& run) const;
  Tensor read_out(const Tensor& h, const Tensor& context, const Tensor& x, const TokenRows& tokens,
                  const Run& run) const;

  std::string name_;
  Options options_;
  std::optional<AttentiveDecoder> attentive_;  // one of the two
  std::optional<RecurrentLayers> fixed_;
  std::optional<Linear> bridge_;
  Linear readout_;
};

}  // namespace heddle::nn
