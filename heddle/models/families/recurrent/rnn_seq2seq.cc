// Recurrent sequence to sequence, before the Transformer: one fixed context (Cho et al. 2014;
// Sutskever et al. 2014), or attention at every step (Bahdanau et al. 2015).
#include "heddle/models/encoder_decoder.h"
#include "heddle/models/family.h"
#include "heddle/nn/recurrent/memory_decoder.h"
#include "heddle/ops/embedding.h"
#include "heddle/ops/shape.h"

namespace heddle {
namespace {

constexpr const char* kFixed = nn::MemoryDecoder::kFixed;

/// Heddle's own keys; those of tokens and ids are the Transformer's.
struct RnnSeq2SeqConfig {
  int64_t vocab_size = 10000, decoder_vocab_size = 0;
  int64_t embedding_size = 256, hidden_size = 512, encoder_hidden_size = 0;
  int64_t encoder_layers = 1, decoder_layers = 1;
  std::string cell = "lstm", attention_scoring = "additive";
  bool bidirectional = true;
  std::string attention_query = "state";
  int64_t attention_size = 0;
  double dropout = 0.2, embedding_dropout = 0.2;
  bool share_encoder_decoder_embeddings = true, tie_word_embeddings = true, output_bias = true;
  int64_t pad_token_id = 0, bos_token_id = 2, eos_token_id = 3, decoder_start_token_id = 2;

  template <class V>
  void fields(V& v) {
    v("vocab_size", vocab_size, "tokens of the joint vocabulary, or of the source's",
      between(1, kMostVocabulary));
    v("decoder_vocab_size", decoder_vocab_size,
      "tokens of the target's own vocabulary; 0: one vocabulary for both",
      between(0, kMostVocabulary));
    v("embedding_size", embedding_size, "width of the embeddings", between(1, kMostWidth));
    v("hidden_size", hidden_size, "width of the decoder's states", between(1, kMostWidth));
    v("encoder_hidden_size", encoder_hidden_size,
      "width of the encoder's states, of each way; 0: hidden_size", between(0, kMostWidth));
    v("encoder_layers", encoder_layers, "recurrent layers of the encoder", between(1, kMostLayers));
    v("decoder_layers", decoder_layers, "recurrent layers of the decoder", between(1, kMostLayers));
    v("cell", cell, "how a state follows from the one before", one_of(nn::cell_names()));
    v("bidirectional", bidirectional, "the encoder reads both ways");
    v("attention_scoring", attention_scoring,
      "of the decoder's state and each of the encoder's: v tanh(W q + U k), products, one linear "
      "layer over [q; k]; none: one fixed context, the encoder's last state",
      one_of({"additive", "scaled_dot", "dot", "linear", kFixed}));
    v("attention_query", attention_query,
      "what asks: the state before a token is read, or that state and the token",
      one_of({"state", "state_and_token"}));
    v("attention_size", attention_size,
      "width that states are projected to before they are compared; 0: hidden_size, and products "
      "compare the states themselves",
      between(0, kMostWidth));
    v("dropout", dropout, "between recurrent layers, and before the output", from_below(0, 1));
    v("embedding_dropout", embedding_dropout, "of the embeddings", from_below(0, 1));
    v("share_encoder_decoder_embeddings", share_encoder_decoder_embeddings,
      "source and target embeddings are one matrix");
    v("tie_word_embeddings", tie_word_embeddings, "target embeddings are the output projection");
    v("output_bias", output_bias, "a bias on the logits");
    v("pad_token_id", pad_token_id, "the padding token", at_least(0));
    v("bos_token_id", bos_token_id, "the token of a beginning", at_least(0));
    v("eos_token_id", eos_token_id, "the token that ends a sentence", at_least(0));
    v("decoder_start_token_id", decoder_start_token_id, "the first token given to the decoder",
      at_least(0));
  }
  void check(const std::string& source) const;

  int64_t target_vocab_size() const {
    return decoder_vocab_size > 0 ? decoder_vocab_size : vocab_size;
  }
  int64_t encoder_width() const {
    return encoder_hidden_size > 0 ? encoder_hidden_size : hidden_size;
  }
  /// Of a row of the encoder.
  int64_t memory_width() const { return (bidirectional ? 2 : 1) * encoder_width(); }
  bool attends() const { return attention_scoring != kFixed; }
  bool asks_by_token() const { return attention_query == "state_and_token"; }
  bool compares_states() const {
    return attention_size == 0 && !asks_by_token() &&
           (attention_scoring == "dot" || attention_scoring == "scaled_dot");
  }
};

EncoderDecoderFacts facts_of(const RnnSeq2SeqConfig& c) {
  const int64_t h = c.hidden_size, gates = gates_of(nn::cell_of(c.cell));
  return {.source_vocab_size = c.vocab_size,
          .target_vocab_size = c.target_vocab_size(),
          .pad_token_id = c.pad_token_id,
          .bos_token_id = c.bos_token_id,
          .eos_token_id = c.eos_token_id,
          .decoder_start_token_id = c.decoder_start_token_id,
          .has_two_vocabularies = c.decoder_vocab_size > 0,
          .decoder_layers = c.decoder_layers,
          .cross_attention_layers = c.attends() ? 1 : 0,
          .leaves_weights = c.attends(),
          .decoder_attention_heads = 1,
          .positions = {.kind = "recurrence"},
          .cache_width = (c.cell == "lstm" ? 2 : 1) * h,
          .multiplied = c.target_vocab_size() * c.embedding_size +
                        gates * h * (c.embedding_size + c.memory_width() + h) +
                        (c.decoder_layers - 1) * gates * h * 2 * h};
}

void RnnSeq2SeqConfig::check(const std::string& source) const {
  heddle::check(!compares_states() || memory_width() == hidden_size, ErrorKind::data,
                "{}: attention_scoring {} multiplies states of the decoder, {} wide, with those of "
                "the encoder, {} wide; set attention_size, which projects both, "
                "encoder_hidden_size {}, or the scoring additive",
                source, attention_scoring, hidden_size, memory_width(),
                hidden_size / (bidirectional ? 2 : 1));
  heddle::check(attends() || attention_size == 0, ErrorKind::data,
                "{}: attention_size is {}, but there is no attention (attention_scoring none)",
                source, attention_size);
  heddle::check(attends() || !asks_by_token(), ErrorKind::data,
                "{}: attention_query is {}, but there is no attention (attention_scoring none)",
                source, attention_query);
  heddle::check(decoder_vocab_size == 0 || !share_encoder_decoder_embeddings, ErrorKind::data,
                "{}: decoder_vocab_size gives the target its own tokens, so its embeddings cannot "
                "be the source's; set share_encoder_decoder_embeddings to false",
                source);
  check_token_ids(facts_of(*this), source);
}

Parameter& table(const Scope& s, const RnnSeq2SeqConfig& c, const char* side, int64_t tokens) {
  const Scope at = c.share_encoder_decoder_embeddings ? s / "model" / "shared"
                                                      : s / "model" / side / "embed_tokens";
  return (at / "weight")
      .parameter(
          {tokens, c.embedding_size},
          Init::normal(std::pow(static_cast<double>(c.embedding_size), -0.5), c.pad_token_id));
}

nn::Embedding embedding(const Scope& s, const RnnSeq2SeqConfig& c, const char* side,
                        int64_t tokens) {
  return {(s / "model" / side / "embed_tokens").prefix(),
          table(s, c, side, tokens),
          nn::Positions::none(),
          {.dropout = c.embedding_dropout}};
}

nn::RecurrentLayers::Options encoder_options(const RnnSeq2SeqConfig& c) {
  return {.cell = nn::cell_of(c.cell),
          .in = c.embedding_size,
          .width = c.encoder_width(),
          .layers = c.encoder_layers,
          .is_two_way = c.bidirectional,
          .dropout = c.dropout,
          .opens_forget_gates = true};
}

nn::MemoryDecoder::Options decoder_options(const RnnSeq2SeqConfig& c) {
  return {.cell = nn::cell_of(c.cell),
          .in = c.embedding_size,
          .width = c.hidden_size,
          .memory_width = c.memory_width(),
          .scoring = c.attention_scoring,
          .attention_width = c.attention_size,
          .compares_states = c.compares_states(),
          .asks_by_token = c.asks_by_token(),
          .layers = c.decoder_layers,
          .dropout = c.dropout};
}

}  // namespace

class RnnSeq2Seq final : public EncoderDecoder {
 public:
  using Config = RnnSeq2SeqConfig;
  static HubFamily family() {
    return {.heads = {{Head::target_token, "RnnSeq2Seq"}}, .is_own_format = true};
  }

  RnnSeq2Seq(const Scope& s, const Config& c, const HubConfig&)
      : EncoderDecoder(facts_of(c), c.memory_width()),
        c_(c),
        source_(embedding(s, c, "encoder", c.vocab_size)),
        target_(embedding(s, c, "decoder", c.target_vocab_size())),
        encoder_(s / "model" / "encoder", encoder_options(c)),
        decoder_(s / "model" / "decoder", decoder_options(c)) {
    Parameter& weight =
        c.tie_word_embeddings
            ? target_.table()
            : (s / "lm_head" / "weight")
                  .parameter({c.target_vocab_size(), c.embedding_size}, Init::xavier_uniform());
    Parameter* const bias =
        c.output_bias ? &(s / "lm_head" / "bias").parameter({c.target_vocab_size()}, Init::zeros())
                      : nullptr;
    heads_.output.emplace(weight, bias);
  }

  nn::TensorNames names() const override { return {}; }

  /// returns: the uppermost states of both ways side by side
  Tensor encode(const ModelInput& source, const Run& run) const override {
    const auto& tokens = source.as<TokenRows>();
    return encoder_(source_(tokens, run), tokens, {}, run).h;
  }

  Tensor decode(const TokenRows& tokens, const Tensor& memory, const Segments& source,
                const Run& run) const override {
    const nn::MemoryDecoder::Result y =
        decoder_(target_(tokens, run), tokens, nn::AttentiveDecoder::Source{&memory, &source},
                 summary_of(memory, first_and_last(source)), run);
    if (run.source_weights != nullptr && y.weights.defined()) {
      run.source_weights->push_back(y.weights);
    }
    return y.x;
  }

  void add_sources(std::span<nn::RowCache> layers, const Tensor& memory, const Segments&,
                   std::span<const int32_t> rows, const Run& run) const override {
    layers[0].put(decoder_.kept(memory, run), rows);
  }

  Tensor step(const TokenRows& tokens, std::span<const nn::RowCache> layers,
              const nn::CachedKeys& sources, const Run& run) const override {
    const auto summary = [&] {
      return summary_of(decoder_.memory_of(layers[0].rows()),
                        first_and_last_of_sequences(*tokens.segments, sources));
    };
    return decoder_(target_(tokens, run), tokens,
                    nn::AttentiveDecoder::CachedSource{&layers[0], &sources}, summary, run);
  }

 private:
  // Rows of a memory where sources begin and end.
  struct Ends {
    std::vector<int32_t> first, last;
  };
  static Ends first_and_last(const Segments& source) {
    Ends ends;
    for (int64_t i = 0; i < source.count(); ++i) {
      check(source.length(i) > 0, ErrorKind::data,
            "source {} of the batch has no tokens; a recurrent encoder needs one at least", i + 1);
      ends.first.push_back(static_cast<int32_t>(source.begin(i)));
      ends.last.push_back(static_cast<int32_t>(source.end(i)) - 1);
    }
    return ends;
  }
  // The same of the source of each sequence of `tokens`, in a cache.
  static Ends first_and_last_of_sequences(const Segments& tokens, const nn::CachedKeys& sources) {
    Ends ends;
    for (const int32_t source : nn::sources_of(tokens, *sources.queries)) {
      ends.first.push_back(sources.key_rows[sources.keys->begin(source)]);
      ends.last.push_back(sources.key_rows[sources.keys->end(source) - 1]);
    }
    return ends;
  }

  // What is left of each source: the state behind its last token, and on the way back that behind
  // its first. returns: [sources, memory_width]
  Tensor summary_of(const Tensor& memory, const Ends& ends) const {
    if (!c_.bidirectional) return gather_rows(memory, ends.last);
    const int64_t w = c_.encoder_width();
    return concat({gather_rows(slice(memory, 1, 0, w), ends.last),
                   gather_rows(slice(memory, 1, w, w), ends.first)},
                  1);
  }

  Config c_;
  nn::Embedding source_, target_;
  nn::RecurrentLayers encoder_;
  nn::MemoryDecoder decoder_;
};

template std::unique_ptr<ModelConfig> new_config<RnnSeq2Seq>();

}  // namespace heddle
