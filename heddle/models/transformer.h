// The encoder-decoder of Vaswani et al. 2017, "Attention Is All You Need".
#pragma once

#include <span>
#include <vector>

#include "heddle/models/transformer_config.h"
#include "heddle/nn/attention.h"
#include "heddle/nn/embedding.h"

namespace heddle {

/// Keys and values that one decoder layer has computed, a row a word of a hypothesis.
struct LayerCache {
  nn::RowCache self;  ///< rows of 2 * d_model
  Tensor cross;       ///< [source rows, 2 * d_model], computed once
};

/// Everything that decoding word by word keeps.
struct DecoderCache {
  std::vector<LayerCache> layers;
  Segments source;   ///< the sentences of the cross keys
  int64_t used = 0;  ///< rows of `self` that hold words
};

/// One word for each of n hypotheses, grouped by sentence.
struct DecoderStep {
  std::span<const int32_t> ids;  ///< [n] the last word of each hypothesis
  int64_t position = 0;          ///< place of these words in their sentences
  Segments beams;                ///< hypotheses of each source sentence (empty for a finished one)
  /// [n * (position + 1)] for each hypothesis, its words' rows in the cache, oldest first; the last
  /// of them is cache.used + i for hypothesis i.
  std::span<const int32_t> key_rows;
};

class Transformer {
 public:
  /// Makes or finds the parameters under `s`. Errors: data if the config does not fit together.
  Transformer(const nn::Scope& s, const TransformerConfig& config);
  ~Transformer();
  Transformer(Transformer&&) noexcept;

  const TransformerConfig& config() const;

  /// source: s rows    returns: [s, d_model]
  /// Errors: data if a sentence is longer than max_position_embeddings and positions are learned.
  Tensor encode(const nn::WordRows& source, const nn::Run& run) const;
  /// Teacher forcing. memory: [s, d_model] of `source`    returns: [t, d_model]
  Tensor decode(const nn::WordRows& target, const Tensor& memory, const Segments& source,
                const nn::Run& run) const;
  /// h: [rows, d_model]    returns: [rows, vocab], f32 unless recording: bf16 has 8 bits, too few
  /// to tell likely words apart.
  Tensor logits(const Tensor& h, const nn::Run& run) const;

  /// The output projection and its bias (undefined if none), for the fused loss.
  Tensor output_weight(const nn::Run& run) const;
  Tensor output_bias() const;

  /// Begins decoding word by word: cross keys and values are computed here.
  DecoderCache start(const Tensor& memory, const Segments& source, const nn::Run& run) const;
  /// One step. returns: [n, d_model]; row i equals the last row of decode() over hypothesis i.
  Tensor step(DecoderCache& cache, const DecoderStep& step, const nn::Run& run) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace heddle
