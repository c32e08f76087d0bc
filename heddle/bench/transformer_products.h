// The matrix products of the encoder-decoder, counted from its config.
#pragma once

#include "heddle/bench/roof.h"
#include "heddle/models/transformer_config.h"

namespace heddle::bench {

/// Of one update, forward and backward, over so many rows of source and target.
Products training_products(const TransformerConfig& c, int64_t source_rows, int64_t target_rows,
                           const Precision& precision);

/// Sentences that are translated together.
struct TranslationSize {
  int64_t source_rows = 0;  ///< tokens of all sources, their ends included
  int64_t sentences = 0;
  int64_t beam = 1;
  int64_t steps = 0;  ///< tokens of each translation
};

/// Of the encoder over all sources, then of the steps: the first with one hypothesis a sentence,
/// the others with `beam`.
Products translation_products(const TransformerConfig& c, const TranslationSize& size,
                              const Precision& precision);

/// Scalars of weights that translating reads: those of the encoder and the cross keys and values
/// once, those of the decoder and the output projection once a step.
int64_t translation_weights_read(const TransformerConfig& c, int64_t steps);

}  // namespace heddle::bench
