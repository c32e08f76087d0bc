// The bridge from what a source is as a whole, fixed contexts, and the read-out.
#include "heddle/nn/recurrent/memory_decoder.h"

#include "heddle/ops/elementwise.h"
#include "heddle/ops/embedding.h"
#include "heddle/ops/shape.h"

namespace heddle::nn {
namespace {

int64_t state_columns(const MemoryDecoder::Options& o) {
  return (o.cell == RecurrentCell::lstm ? 2 : 1) * o.width;
}

AttentiveDecoder::Options attentive_options(const MemoryDecoder::Options& o) {
  return {.cell = o.cell,
          .in = o.in,
          .width = o.width,
          .memory_width = o.memory_width,
          .attention_width = o.attention_width,
          .compares_states = o.compares_states,
          .scoring = o.scoring,
          .asks_by_token = o.asks_by_token,
          .is_gated = o.is_gated,
          .layers = o.layers,
          .dropout = o.dropout,
          .opens_forget_gates = true,
          .observed = "cross_attentions.0"};
}

RecurrentLayers::Options fixed_options(const MemoryDecoder::Options& o) {
  return {.cell = o.cell,
          .in = o.in + o.memory_width,
          .width = o.width,
          .layers = o.layers,
          .dropout = o.dropout,
          .opens_forget_gates = true};
}

std::vector<int32_t> sequence_of_rows(const Segments& tokens) {
  std::vector<int32_t> sequences;
  for (int64_t i = 0; i < tokens.count(); ++i) {
    sequences.insert(sequences.end(), tokens.length(i), static_cast<int32_t>(i));
  }
  return sequences;
}

}  // namespace

MemoryDecoder::MemoryDecoder(const Scope& s, const Options& o)
    : name_(s.prefix()),
      options_(o),
      readout_(s / "readout", {.in = o.width + o.memory_width + o.in, .out = o.in}) {
  if (o.scoring == kFixed) {
    fixed_.emplace(s, fixed_options(o));
  } else {
    attentive_.emplace(s, attentive_options(o));
  }
  if (!o.has_bridge) return;
  bridge_.emplace(s / "bridge",
                  Linear::Options{.in = o.memory_width, .out = state_columns(o) * o.layers});
}

MemoryDecoder::Result MemoryDecoder::operator()(const Tensor& x, const TokenRows& tokens,
                                                const AttentiveDecoder::Source& source,
                                                const Tensor& summary, const Run& run) const {
  const std::vector<CellState> begin = begin_by(summary, run);
  if (fixed_) return {by_fixed(x, tokens, summary, begin, run), {}};
  const AttentiveDecoder::Result y = (*attentive_)(x, tokens, source, begin, run);
  return {read_out(y.h, y.contexts, x, tokens, run), y.weights, y.gates};
}

Tensor MemoryDecoder::kept(const Tensor& memory, const Run& run) const {
  return attentive_ ? attentive_->keys_and_values(memory, run) : memory;
}

Tensor MemoryDecoder::memory_of(const Tensor& kept) const {
  return kept.slice(1, kept.size(1) - options_.memory_width, options_.memory_width);
}

Tensor MemoryDecoder::operator()(const Tensor& x, const TokenRows& tokens,
                                 const AttentiveDecoder::CachedSource& source,
                                 const std::function<Tensor()>& summary, const Run& run) const {
  const CachedKeys own = tokens.cache->keys();
  bool begins = false;  // a sequence without tokens yet; of the others the cache has the states
  for (int64_t i = 0; i < own.queries->count(); ++i) {
    begins = begins || own.keys->length(i) == own.queries->length(i);
  }
  const Tensor whole = fixed_ || (bridge_ && begins) ? summary() : Tensor();
  const std::vector<CellState> begin = begins ? begin_by(whole, run) : std::vector<CellState>();
  if (fixed_) return by_fixed(x, tokens, whole, begin, run);
  const AttentiveDecoder::Result y = (*attentive_)(x, tokens, source, begin, run);
  return read_out(y.h, y.contexts, x, tokens, run);
}

// The states that the decoder begins with: h = tanh(W summary + b), of LSTM c = V summary + a.
std::vector<CellState> MemoryDecoder::begin_by(const Tensor& summary, const Run& run) const {
  std::vector<CellState> begin;
  if (!bridge_) return begin;
  const Tensor all = (*bridge_)(summary, run);
  const int64_t columns = state_columns(options_), w = options_.width;
  for (int64_t i = 0; i < options_.layers; ++i) {
    const int64_t at = i * columns;
    CellState state{.h = activation(Activation::tanh, concat({slice(all, 1, at, w)}, 1))};
    if (options_.cell == RecurrentCell::lstm) {
      state.c = cast(concat({slice(all, 1, at + w, w)}, 1), DType::f32);
    }
    begin.push_back(std::move(state));
  }
  return begin;
}

Tensor MemoryDecoder::by_fixed(const Tensor& x, const TokenRows& tokens, const Tensor& summary,
                               std::span<const CellState> begin, const Run& run) const {
  const Tensor context = cast(gather_rows(summary, sequence_of_rows(*tokens.segments)), x.dtype());
  const Tensor h = (*fixed_)(concat({x, context}, 1), tokens, begin, run).h;
  return read_out(h, context, x, tokens, run);
}

// The deep output of Bahdanau et al. 2015, appendix A.2.2, by tanh in place of maxout.
Tensor MemoryDecoder::read_out(const Tensor& h, const Tensor& context, const Tensor& x,
                               const TokenRows& tokens, const Run& run) const {
  const Tensor y = readout_(concat({h, context, x}, 1), run, Activation::tanh);
  return dropout(y, run.dropout(options_.dropout, name_ + ".readout", tokens.rows));
}

}  // namespace heddle::nn
