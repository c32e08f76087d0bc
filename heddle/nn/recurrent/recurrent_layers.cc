// Layers of recurrent cells, and the states that decoding keeps of them.
#include "heddle/nn/recurrent/recurrent_layers.h"

#include <array>
#include <cmath>

#include "heddle/ops/elementwise.h"
#include "heddle/ops/shape.h"

namespace heddle::nn {
namespace {

Linear input_layer(const Scope& s, const std::string& suffix, const CellWeights::Options& o) {
  const int64_t gates = gates_of(o.cell) * o.width;
  const Init init = Init::uniform(1 / std::sqrt(static_cast<double>(o.width)));
  Parameter& weight = (s / ("weight_ih" + suffix)).parameter({gates, o.in}, init);
  weight.between_hidden_states();
  if (!o.bias) return {s.prefix() + suffix, weight};
  Init bias = init;
  if (o.opens_forget_gates && o.cell == RecurrentCell::lstm) {
    bias.ones_begin = o.width, bias.ones_count = o.width;
  }
  return {s.prefix() + suffix, weight, &(s / ("bias_ih" + suffix)).parameter({gates}, bias)};
}

Rows row_of(const Tensor& x, int64_t i) { return x.rows().slice(i, 1); }

}  // namespace

std::vector<std::string> cell_names() { return {"rnn_tanh", "rnn_relu", "gru", "lstm"}; }

RecurrentCell cell_of(const std::string& name) {
  const std::vector<std::string> names = cell_names();
  constexpr RecurrentCell kCells[] = {RecurrentCell::tanh, RecurrentCell::relu, RecurrentCell::gru,
                                      RecurrentCell::lstm};
  for (size_t i = 0; i < names.size(); ++i) {
    if (name == names[i]) return kCells[i];
  }
  fail(ErrorKind::data, "cell '{}' is unknown; heddle has {}", name, fmt::join(names, ", "));
}

CellWeights::CellWeights(const Scope& s, const std::string& suffix, const Options& o)
    : has_c_(o.cell == RecurrentCell::lstm), input_(input_layer(s, suffix, o)) {
  const int64_t gates = gates_of(o.cell) * o.width;
  const Init init = Init::uniform(1 / std::sqrt(static_cast<double>(o.width)));
  weight_ = &(s / ("weight_hh" + suffix)).parameter({gates, o.width}, init);
  weight_->between_hidden_states();
  if (o.bias) bias_ = &(s / ("bias_hh" + suffix)).parameter({gates}, init);
}

StateWeights CellWeights::state(const Run& run) const {
  const WeightInUse weight(*weight_, run);
  return {weight.w, bias_ == nullptr ? Tensor() : bias_->in(DType::f32), weight.constant,
          weight.int8};
}

CellState CellWeights::states_before(const RowCache& states, const CachedKeys& tokens,
                                     const CellState& begin, const Run& run) const {
  const int64_t n = tokens.queries->count(), width = weight_->shape()[1];
  std::vector<int32_t> before(n, -1);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t first = tokens.keys->end(i) - tokens.queries->length(i);
    if (first > tokens.keys->begin(i)) before[i] = tokens.key_rows[first - 1];
  }
  const auto part = [&](int64_t column, const Tensor& at_beginning, DType type) {
    if (!states.rows().defined()) {  // none has a token yet
      return at_beginning.defined() ? cast(at_beginning, type) : Tensor::zeros({n, width}, type);
    }
    Tensor x = Tensor::empty({n, width}, type);
    kernels().gather_rows(states.rows().slice(1, column, width).rows(), before.data(), x.rows());
    for (int64_t i = 0; i < n && at_beginning.defined(); ++i) {
      if (before[i] < 0) kernels().convert(row_of(at_beginning, i), row_of(x, i));
    }
    return x;
  };
  CellState state{.h = part(0, begin.h, run.compute)};
  if (has_c_) state.c = part(width, begin.c, DType::f32);
  return state;
}

void keep_states(RowCache& states, const CachedKeys& tokens, const Recurrence& pass) {
  const std::array parts = {pass.h, pass.c};
  states.put(std::span(parts).first(pass.c.defined() ? 2 : 1), DType::f32, tokens.new_rows);
}

RecurrentLayers::RecurrentLayers(const Scope& s, const Options& o)
    : name_(s.prefix()), options_(o) {
  for (int64_t i = 0; i < o.layers; ++i) {
    const std::string suffix = fmt::format("_l{}", o.first + i);
    const CellWeights::Options each{.cell = o.cell,
                                    .in = i == 0 ? o.in : ways() * o.width,
                                    .width = o.width,
                                    .bias = o.bias,
                                    .opens_forget_gates = o.opens_forget_gates};
    weights_.emplace_back(s, suffix, each);
    if (o.is_two_way) weights_.emplace_back(s, suffix + "_reverse", each);
  }
}

RecurrentLayers::Result RecurrentLayers::operator()(const Tensor& x, const TokenRows& tokens,
                                                    std::span<const CellState> begin,
                                                    const Run& run) const {
  check(begin.empty() || begin.size() == weights_.size(), ErrorKind::internal,
        "{}: {} states at the beginning for {} layers", name_, begin.size(), weights_.size());
  check(tokens.cache == nullptr || !options_.is_two_way, ErrorKind::internal,
        "{}: a two-way layer reads whole sequences, it cannot continue them", name_);
  Result result{.h = x, .last = {}};
  for (int64_t i = 0; i < options_.layers; ++i) {
    if (i > 0) {
      result.h = dropout(
          result.h, run.dropout(options_.dropout, fmt::format("{}.l{}", name_, options_.first + i),
                                tokens.rows));
    }
    std::vector<Tensor> ways_of;
    for (int64_t way = 0; way < ways(); ++way) {
      const auto number = static_cast<size_t>(i * ways() + way);
      const Recurrence y =
          pass(result.h, tokens, number, begin.empty() ? CellState() : begin[number], run);
      ways_of.push_back(y.h);
      result.last.push_back(y.last);
    }
    result.h = ways_of.size() == 1 ? ways_of[0] : concat(ways_of, 1);
  }
  return result;
}

Recurrence RecurrentLayers::pass(const Tensor& x, const TokenRows& tokens, size_t number,
                                 const CellState& begin, const Run& run) const {
  const CellWeights& weights = weights_[number];
  const Tensor in = weights.input(x, run);
  const LayerName layer(name_);
  const RecurrenceOptions options{.cell = options_.cell,
                                  .is_reversed = options_.is_two_way && number % 2 == 1};
  if (tokens.cache == nullptr) {
    return recurrence(in, weights.state(run), begin, *tokens.segments, options);
  }
  const CachedKeys keys = tokens.cache->keys();
  RowCache& kept = tokens.cache->layer(options_.first + static_cast<int64_t>(number));
  const CellState before = weights.states_before(kept, keys, begin, run);
  const Recurrence y = recurrence(in, weights.state(run), before, *keys.queries, options);
  keep_states(kept, keys, y);
  return y;
}

}  // namespace heddle::nn
