// The matrix products of the encoder-decoder: Vaswani et al. 2017, section 3, layer by layer.
#include "heddle/bench/transformer_products.h"

namespace heddle::bench {
namespace {

void add_encoder(Products& p, const TransformerConfig& c, int64_t rows) {
  const int64_t d = c.d_model, n = c.encoder_layers;
  p.linear(rows, d, 3 * d, n);  // queries, keys, values
  p.linear(rows, d, d, n);
  p.linear(rows, d, c.encoder_ffn_dim, n);
  p.linear(rows, c.encoder_ffn_dim, d, n);
}

void add_cross_keys(Products& p, const TransformerConfig& c, int64_t rows) {
  p.linear(rows, c.d_model, 2 * c.d_model, c.decoder_layers);
}

// `times` passes over `rows` rows each, cross keys and values aside.
void add_decoder(Products& p, const TransformerConfig& c, int64_t rows, int64_t times) {
  const int64_t d = c.d_model, n = c.decoder_layers * times;
  p.linear(rows, d, 3 * d, n);
  p.linear(rows, d, d, 3 * n);  // out; cross queries, out
  p.linear(rows, d, c.decoder_ffn_dim, n);
  p.linear(rows, c.decoder_ffn_dim, d, n);
  p.logits(rows, d, c.vocab_size, times);
}

}  // namespace

Products training_products(const TransformerConfig& c, int64_t source_rows, int64_t target_rows,
                           const Precision& precision) {
  Products p(precision, true);
  add_encoder(p, c, source_rows);
  add_cross_keys(p, c, source_rows);
  add_decoder(p, c, target_rows, 1);
  return p;
}

Products translation_products(const TransformerConfig& c, const TranslationSize& size,
                              const Precision& precision) {
  Products p(precision, false);
  add_encoder(p, c, size.source_rows);
  add_cross_keys(p, c, size.source_rows);
  add_decoder(p, c, size.sentences, 1);
  add_decoder(p, c, size.sentences * size.beam, size.steps - 1);
  return p;
}

int64_t translation_weights_read(const TransformerConfig& c, int64_t steps) {
  const int64_t square = c.d_model * c.d_model;
  const int64_t encoder = c.encoder_layers * (4 * square + 2 * c.d_model * c.encoder_ffn_dim);
  const int64_t cross_keys = c.decoder_layers * 2 * square;
  const int64_t decoder = c.decoder_layers * (6 * square + 2 * c.d_model * c.decoder_ffn_dim);
  return encoder + cross_keys + steps * (decoder + c.vocab_size * c.d_model);
}

}  // namespace heddle::bench
