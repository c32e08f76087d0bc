// A recurrent language model: Mikolov et al. 2010; Zaremba et al. 2014, "Recurrent Neural Network
// Regularization"; tied weights of Press & Wolf 2017.
#include "heddle/models/family.h"
#include "heddle/nn/recurrent/recurrent_layers.h"
#include "heddle/nn/relative/relative_rows.h"
#include "heddle/ops/elementwise.h"
#include "heddle/ops/shape.h"

namespace heddle {
namespace {

/// Heddle's own keys.
struct RnnLmConfig {
  int64_t vocab_size = 10000, embedding_size = 256, hidden_size = 512, num_layers = 2;
  std::string cell = "lstm";
  double dropout = 0.2, embedding_dropout = 0.2;
  bool tie_word_embeddings = true;

  template <class V>
  void fields(V& v) {
    v("vocab_size", vocab_size, "tokens known to the tokenizer", between(1, kMostVocabulary));
    v("embedding_size", embedding_size, "width of the embeddings", between(1, kMostWidth));
    v("hidden_size", hidden_size, "width of the states", between(1, kMostWidth));
    v("num_layers", num_layers, "recurrent layers", between(1, kMostLayers));
    v("cell", cell, "how a state follows from the one before", one_of(nn::cell_names()));
    v("dropout", dropout, "between recurrent layers, and before the output", from_below(0, 1));
    v("embedding_dropout", embedding_dropout, "of the embeddings", from_below(0, 1));
    v("tie_word_embeddings", tie_word_embeddings,
      "token embeddings are the output projection; states of another width go through a linear "
      "layer before");
  }
  void check(const std::string&) const {}
  bool is_lstm() const { return cell == "lstm"; }
  int64_t state_width() const { return (is_lstm() ? 2 : 1) * hidden_size; }
  /// States are brought to the width of a tied table.
  bool projects() const { return tie_word_embeddings && embedding_size != hidden_size; }
  int64_t output_width() const { return projects() ? embedding_size : hidden_size; }
};

nn::Embedding embedding(const Scope& s, const RnnLmConfig& c) {
  const double std = std::pow(static_cast<double>(c.embedding_size), -0.5);
  Parameter& table = (s / "weight").parameter({c.vocab_size, c.embedding_size}, Init::normal(std));
  return {s.prefix(), table, nn::Positions::none(), {.dropout = c.embedding_dropout}};
}

}  // namespace

class RnnLm final : public LanguageModel, public WithMemory {
 public:
  using Config = RnnLmConfig;
  static HubFamily family() {
    return {.heads = {{Head::next_token, "RnnForCausalLM"},
                      {Head::none, "RnnModel"},
                      {Head::sequence_classes, "RnnForSequenceClassification"}}};
  }

  RnnLm(const Scope& s, const Config& c, const HubConfig& hub)
      : LanguageModel({c.vocab_size, kAnyLength, c.num_layers, c.output_width()}),
        c_(c),
        embedding_(embedding(s / "model" / "embed_tokens", c)),
        rnn_(s / "model" / "rnn", {.cell = nn::cell_of(c.cell),
                                   .in = c.embedding_size,
                                   .width = c.hidden_size,
                                   .layers = c.num_layers,
                                   .dropout = c.dropout,
                                   .opens_forget_gates = true}) {
    if (c.projects()) {
      projection_.emplace(s / "model" / "projection",
                          Linear::Options{.in = c.hidden_size, .out = c.embedding_size});
    }
    if (hub.head == Head::next_token) {
      Parameter& weight = c.tie_word_embeddings ? embedding_.table()
                                                : (s / "lm_head" / "weight")
                                                      .parameter({c.vocab_size, c.hidden_size},
                                                                 Init::xavier_uniform());
      heads_.output.emplace(weight,
                            &(s / "lm_head" / "bias").parameter({c.vocab_size}, Init::zeros()));
    } else if (hub.head == Head::sequence_classes) {
      heads_.sequence_classes = classes_of_last_token(
          s / "score", {.width = c.output_width(), .labels = hub.classes()}, hub.pad_token_id);
    }
  }

  /// The state behind the last token of each sequence.
  int64_t memory_length() const override { return 1; }
  int64_t memory_width() const override { return c_.state_width(); }
  int64_t cache_width() const override { return c_.state_width(); }

  Tensor hidden(const TokenRows& tokens, const Run& run) const override {
    const nn::RecurrentLayers::Result y =
        rnn_(embedding_(tokens, run), tokens, begin_of(tokens, run), run);
    if (tokens.memory != nullptr) *tokens.memory = memory_of(y.last);
    const Tensor h = projection_ ? (*projection_)(y.h, run) : y.h;
    return keep_answers(dropout(h, run.dropout(c_.dropout, "model.rnn.last", tokens.rows)), tokens);
  }

  nn::TensorNames names() const override { return {}; }

 private:
  // The states that the memory of the tokens before has; none: they begin.
  std::vector<CellState> begin_of(const TokenRows& tokens, const Run& run) const {
    if (tokens.memory == nullptr || tokens.memory->layers.empty()) return {};
    const nn::Memory& m = *tokens.memory;
    check(std::ssize(m.layers) == c_.num_layers && m.segments.count() == tokens.segments->count(),
          ErrorKind::shape, "rnn_lm: a memory of {} layers and {} sequences, for {} and {}",
          m.layers.size(), m.segments.count(), c_.num_layers, tokens.segments->count());
    if (m.segments.rows() == 0) return {};
    std::vector<CellState> begin;
    for (const Tensor& layer : m.layers) {
      check(layer.shape() == Shape({m.segments.count(), c_.state_width()}), ErrorKind::shape,
            "rnn_lm: a memory is {}, but states are [{}, {}]", layer.shape(), m.segments.count(),
            c_.state_width());
      const auto part = [&](int64_t first, DType dtype) {
        return cast(layer.slice(1, first, c_.hidden_size).to_contiguous(), dtype);
      };
      begin.push_back({.h = part(0, run.compute)});
      if (c_.is_lstm()) begin.back().c = part(c_.hidden_size, DType::f32);
    }
    return begin;
  }

  // No gradient goes from one segment into that before.
  nn::Memory memory_of(std::span<const CellState> last) const {
    nn::Memory memory;
    for (const CellState& state : last) {
      const NoGrad off;
      const Tensor h = cast(state.h.detached(), DType::f32);
      memory.layers.push_back(c_.is_lstm() ? concat({h, state.c.detached()}, 1) : h.clone());
    }
    memory.segments = Segments::uniform(memory.layers[0].size(0), 1);
    return memory;
  }

  Config c_;
  nn::Embedding embedding_;
  nn::RecurrentLayers rnn_;
  std::optional<Linear> projection_;
};

template std::unique_ptr<ModelConfig> new_config<RnnLm>();

}  // namespace heddle
