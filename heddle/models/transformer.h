// The encoder-decoder of Vaswani et al. 2017, "Attention Is All You Need".
#pragma once

#include <span>
#include <vector>

#include "heddle/models/transformer_config.h"
#include "heddle/nn/attention.h"
#include "heddle/nn/embedding.h"

namespace heddle {

/// Keys and values that one decoder layer has computed, rows of 2 * d_model.
struct LayerCache {
  nn::RowCache self;   ///< a row a token of a hypothesis
  nn::RowCache cross;  ///< a row a source token, computed once
};

/// Everything that decoding token by token keeps. Sentences come and go: their rows are taken from
/// the pools and given back.
struct DecoderCache {
  std::vector<LayerCache> layers;
  nn::RowPool tokens, sources;  ///< of `self` and of `cross`
};

/// One token for each of n hypotheses, grouped by sentence.
struct DecoderStep {
  std::span<const int32_t> ids;           ///< [n] the last token of each hypothesis
  std::span<const int32_t> position_ids;  ///< [n] its position in its translation
  nn::CachedKeys tokens;   ///< segment i: the tokens of hypothesis i, one of them new
  nn::CachedKeys sources;  ///< segment i: hypotheses and source tokens of sentence i
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
  Tensor encode(const nn::TokenRows& source, const nn::Run& run) const;
  /// Teacher forcing. memory: [s, d_model] of `source`    returns: [t, d_model]
  Tensor decode(const nn::TokenRows& target, const Tensor& memory, const Segments& source,
                const nn::Run& run) const;
  /// From h [rows, d_model] to the logits of the next token.
  const nn::OutputProjection& output() const;

  /// Begins decoding token by token.
  DecoderCache start() const;
  /// Computes the cross keys and values of sentences, which go to these rows of the cache.
  /// memory: [s, d_model], rows: [s]
  void add_sources(DecoderCache& cache, const Tensor& memory, std::span<const int32_t> rows,
                   const nn::Run& run) const;
  /// One step. returns: [n, d_model]; row i equals the last row of decode() over hypothesis i.
  Tensor step(DecoderCache& cache, const DecoderStep& step, const nn::Run& run) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace heddle
