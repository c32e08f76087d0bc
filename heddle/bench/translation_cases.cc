// The cases of encoder-decoders, that of 2017 and that by LSTM before it; sizes as in bench/peers.
#include "heddle/bench/case.h"
#include "heddle/bench/translation_work.h"
#include "heddle/models/registry.h"
#include "heddle/models/transformer.h"

namespace heddle::bench {
namespace {

// ---- Vaswani et al. 2017

struct TransformerSize {
  const char* name;
  int64_t width, layers, heads, hidden, vocab;
};

constexpr TransformerSize kTiny = {"tiny d128 L4", 128, 4, 4, 256, 10000};
constexpr TransformerSize kBaseTrained = {"base d512 L6", 512, 6, 8, 2048, 10000};
constexpr TransformerSize kBase = {"base d512 L6", 512, 6, 8, 2048, 32000};

// Post-norm and ReLU as in the paper, learned positions, one matrix for both embeddings and the
// output. Dropout as PyTorch's nn.Transformer has it: sublayers, attention weights, inside the
// feed-forward layers; none on the embeddings.
TransformerConfig config_of(const TransformerSize& s) {
  TransformerConfig c;
  c.vocab_size = s.vocab;
  c.set_sizes(s.layers, s.width, s.hidden, s.heads);
  c.dropout = c.attention_dropout = c.activation_dropout = 0.1;
  c.embedding_dropout = 0;
  c.position_embedding_type = "learned";
  return c;
}

BenchCase training_of(const char* name, const TransformerSize& s, int64_t sentences,
                      int64_t length) {
  const TransformerConfig config = config_of(s);
  return training_case(
      {.name = name,
       .model = s.name,
       .vocab = s.vocab,
       .sentences = sentences,
       .length = length,
       .dtypes = {"f32", "bf16"},
       .config = [config] { return model_config(config); },
       .of_training =
           [config](const Segments& source, const Segments& target, const Precision& precision) {
             return training_products(config, source.rows(), target.rows(), precision);
           }});
}

BenchCase translation_of(const char* name, const TransformerSize& s, int64_t beam) {
  TransformerConfig config = config_of(s);
  config.output_bias = true;
  return translation_case(
      {.name = name,
       .model = s.name,
       .vocab = s.vocab,
       .sentences = 64,
       .beam = beam,
       .dtypes = {"f32", "bf16", "int8"},
       .config = [config] { return model_config(config); },
       .of_translation =
           [config, beam](const Segments& source, int64_t steps, const Precision& precision) {
             const TranslationSize size = {.source_rows = source.rows(),
                                           .sentences = source.count(),
                                           .beam = beam,
                                           .steps = steps};
             return translation_products(config, size, precision);
           }});
}

// ---- Bahdanau et al. 2015 with LSTM, the size of recipes/multi30k-de-en-lstm.json

constexpr int64_t kLstmVocab = 6000, kEmbedding = 256, kHidden = 512, kEncoderHidden = 256,
                  kEncoderLayers = 2, kAttention = 256, kMemory = 2 * kEncoderHidden;
constexpr const char* kLstm = "lstm d512, attention";

std::unique_ptr<ModelConfig> lstm_config() {
  return read_model_config(Json::object({{"model_type", "rnn_seq2seq"},
                                         {"vocab_size", kLstmVocab},
                                         {"embedding_size", kEmbedding},
                                         {"hidden_size", kHidden},
                                         {"encoder_hidden_size", kEncoderHidden},
                                         {"encoder_layers", kEncoderLayers},
                                         {"attention_size", kAttention},
                                         {"dropout", 0.4},
                                         {"embedding_dropout", 0.3}}),
                           "bench");
}

// The encoder, what scores need of its states, the decoder's first states.
void add_sources(Products& p, const Segments& source) {
  for (int64_t i = 0; i < 2 * kEncoderLayers; ++i) {  // two ways
    p.linear(source.rows(), i < 2 ? kEmbedding : kMemory, 4 * kEncoderHidden);
    p.steps(source, kEncoderHidden, 4 * kEncoderHidden, 1);
  }
  p.linear(source.rows(), kMemory, kAttention);
  p.linear(source.count(), kMemory, 2 * kHidden);
}

void add_steps(Products& p, const Segments& target) {
  p.steps(target, kHidden, kAttention);
  p.steps(target, kMemory, 4 * kHidden);
  p.steps(target, kHidden, 4 * kHidden);
}

constexpr int64_t kReadOut = kHidden + kMemory + kEmbedding;

Products lstm_training_products(const Segments& source, const Segments& target,
                                const Precision& precision) {
  Products p(precision, true);
  add_sources(p, source);
  add_steps(p, target);
  p.linear(target.rows(), kEmbedding, 4 * kHidden);
  p.linear(target.rows(), kReadOut, kEmbedding);
  p.logits(target.rows(), kEmbedding, kLstmVocab);
  return p;
}

Products lstm_translation_products(const Segments& source, int64_t steps,
                                   const Precision& precision) {
  const int64_t sentences = source.count();
  Products p(precision, false);
  add_sources(p, source);
  add_steps(p, Segments::uniform(sentences, steps));
  p.linear(sentences, kEmbedding, 4 * kHidden, steps);
  p.linear(sentences, kReadOut, kEmbedding, steps);
  p.logits(sentences, kEmbedding, kLstmVocab, steps);
  return p;
}

PairsCase lstm_case(const char* name, int64_t sentences, std::vector<std::string> dtypes) {
  return {.name = name,
          .model = kLstm,
          .vocab = kLstmVocab,
          .sentences = sentences,
          .length = 24,
          .dtypes = std::move(dtypes),
          .config = lstm_config,
          .of_training = lstm_training_products,
          .of_translation = lstm_translation_products};
}

}  // namespace

std::vector<BenchCase> translation_cases() {
  return {training_of("train-tiny", kTiny, 128, 24),
          training_of("train-base", kBaseTrained, 64, 32),
          translation_of("translate-tiny", kTiny, 1),
          translation_of("translate-base", kBase, 1),
          translation_of("translate-base-beam4", kBase, 4),
          training_case(lstm_case("train-lstm", 128, {"f32", "bf16"})),
          translation_case(lstm_case("translate-lstm", 64, {"f32", "bf16", "int8"}))};
}

}  // namespace heddle::bench
