// Small models with random weights, alone or as a model directory with a tokenizer.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "heddle/infer/loading/loaded_model.h"
#include "heddle/models/transformer.h"
#include "tests/text/small_tokenizers.h"

namespace heddle::testing {

inline TransformerConfig small_config(int64_t vocab_size = 40) {
  TransformerConfig c;
  c.vocab_size = vocab_size;
  c.d_model = 32;
  c.encoder_layers = c.decoder_layers = 2;
  c.encoder_attention_heads = c.decoder_attention_heads = 4;
  c.encoder_ffn_dim = c.decoder_ffn_dim = 48;
  c.max_position_embeddings = 64;
  return c;
}

/// A model whose weights are a function of config and seed. Random embeddings are scaled up, so
/// that tokens differ in probability and sentences end.
struct SmallModel {
  TransformerConfig config;
  nn::Parameters parameters;
  std::unique_ptr<Model> made;
  const EncoderDecoder& model;

  explicit SmallModel(const TransformerConfig& c, uint64_t seed = 7)
      : config(c),
        parameters(seed),
        made(model_config(config)->make(nn::Scope(parameters))),
        model(*made->as<EncoderDecoder>()) {
    for (auto& p : parameters.all()) {
      if (p->value().rank() < 2) continue;
      for (int64_t i = 0; i < p->elements(); ++i) p->value().data<float>()[i] *= 1.7f;
      p->changed(true);
    }
  }
};

/// The config of a translator that was read.
inline const TransformerConfig& config_of(const LoadedModel& m) {
  return dynamic_cast<const Transformer&>(*m.model).transformer_config();
}

/// Sentences of 1 to `longest` random tokens, neither special nor ended.
inline std::vector<std::vector<int32_t>> random_sentences(size_t count, int longest,
                                                          int64_t vocab_size, uint32_t seed = 3) {
  std::mt19937 random(seed);
  std::vector<std::vector<int32_t>> sentences(count);
  for (auto& s : sentences) {
    s.resize(1 + random() % longest);
    for (int32_t& id : s) id = static_cast<int32_t>(4 + random() % (vocab_size - 4));
  }
  return sentences;
}

/// The tokenizer of the model directories, trained once.
inline const Tokenizer& shared_tokenizer() {
  static const Tokenizer tokenizer = small_tokenizer(TokenizerType::unigram);
  return tokenizer;
}

/// Writes a small model with its tokenizer.
inline void write_small_model_of_seed(const std::string& folder, uint64_t seed) {
  const SmallModel m(small_config(shared_tokenizer().vocab_size()), seed);
  save_model(folder, *m.made, m.parameters, {.tokenizer = &shared_tokenizer()});
}
inline void write_small_model(const std::string& folder) { write_small_model_of_seed(folder, 7); }

/// A translator of one fixed context: it looks at no word of its source.
inline void write_fixed_translator(const std::string& folder) {
  nn::Parameters parameters(7);
  const auto model = make_model(
      nn::Scope(parameters),
      Json::parse(fmt::format(
          R"({{"model_type": "rnn_seq2seq", "vocab_size": {}, "embedding_size": 12, "hidden_size": 16,
          "attention_scoring": "none"}})",
          shared_tokenizer().vocab_size())));
  save_model(folder, *model, parameters, {.tokenizer = &shared_tokenizer()});
}

}  // namespace heddle::testing
