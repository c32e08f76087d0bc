// What a model that reads a source and writes a target is asked for, whatever its family and
// whatever the source.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "heddle/models/token_model.h"
#include "heddle/nn/position.h"

namespace heddle {

/// What tells a stack's positions apart.
struct PositionFacts {
  std::string kind = "learned";           ///< "sinusoidal", "rotary", "recurrence", "none"
  int64_t positions = 0;                  ///< as many as the config has
  nn::SinusoidalOptions sinusoidal = {};  ///< its offset is that of learned tables too
  double rope_theta = 10000;
  int64_t width = 0;           ///< of the rows that have them; 0: the model's
  bool are_distances = false;  ///< between tokens, of which none may be missing
};

/// Sizes and special ids of an encoder-decoder. The ids may be beyond the vocabulary.
struct EncoderDecoderFacts {
  int64_t source_vocab_size = 0;  ///< 0: the source is not tokens
  int64_t target_vocab_size = 0;
  int64_t pad_token_id = 0, bos_token_id = 0, eos_token_id = 0, decoder_start_token_id = 0;
  bool has_two_vocabularies = false;
  int64_t decoder_layers = 0;          ///< that keep something of each token
  int64_t cross_attention_layers = 0;  ///< that ask the source; an observer knows 0, 1, ..
  bool leaves_weights = false;         ///< whether a pass can leave Run::source_weights
  int64_t encoder_attention_heads = 0, decoder_attention_heads = 0;
  PositionFacts positions = {};
  int64_t longest_source = kAnyLength;  ///< in tokens, the end included
  int64_t longest_target = kAnyLength;  ///< in tokens, start or end included
  int64_t cache_width = 0;              ///< scalars of a token's keys and values in each layer
  int64_t multiplied = 0;               ///< weights that products with a token's row read

  /// Tokens of texts, or of sources where these have their own.
  int64_t text_vocab_size() const {
    return source_vocab_size > 0 ? source_vocab_size : target_vocab_size;
  }
};

/// Checks that the special ids are tokens, as translating needs. Errors: data, naming `source`.
inline void check_token_ids(const EncoderDecoderFacts& f, const std::string& source) {
  const int64_t tokens = f.source_vocab_size > 0
                             ? std::min(f.source_vocab_size, f.target_vocab_size)
                             : f.target_vocab_size;
  for (const int64_t id :
       {f.pad_token_id, f.bos_token_id, f.eos_token_id, f.decoder_start_token_id}) {
    check(id < tokens, ErrorKind::data, "{}: the special id {} is not below vocab_size {}", source,
          id, tokens);
  }
}

/// An encoder reads a source, tokens or an image; a decoder that sees it predicts the next token of
/// a target. hidden() is the encoder's, layers() the decoder's: see facts().
class EncoderDecoder : public Model {
 public:
  static constexpr const char* kAbility = "reads a source and writes a target";

  EncoderDecoder(const EncoderDecoderFacts& facts, int64_t width)
      : Model(facts.decoder_layers, width), facts_(facts) {}

  const EncoderDecoderFacts& facts() const { return facts_; }
  /// From the decoder's states to the logits of the next token. Errors: data if there is no head.
  const nn::OutputProjection& output() const { return heads_.token_output(); }
  /// See TokenModel::positions(); of both sides.
  virtual std::vector<int32_t> positions(std::span<const int32_t> ids) const {
    return counted_positions(ids);
  }

  /// What the decoder sees of the sources: [s, width], rows of memory_segments(source).
  /// Errors: data if a sentence is longer than learned positions reach.
  virtual Tensor encode(const ModelInput& source, const nn::Run& run) const = 0;
  /// The rows of encode() that are each source's: its tokens, unless the family says otherwise.
  virtual Segments memory_segments(const ModelInput& source) const { return source.segments; }
  /// Teacher forcing. memory: [s, width] of `source`    returns: [t, width]
  virtual Tensor decode(const nn::TokenRows& target, const Tensor& memory, const Segments& source,
                        const nn::Run& run) const = 0;
  /// Computes what the decoder's layers keep of sources (cross keys and values), which goes to
  /// these rows of each layer's cache. memory: [s, width] of `source`, rows: [s]
  virtual void add_sources(std::span<nn::RowCache> layers, const Tensor& memory,
                           const Segments& source, std::span<const int32_t> rows,
                           const nn::Run& run) const = 0;
  /// Token by token: those of `target` continue the hypotheses of its cache, grouped by sentence;
  /// segment i of `sources`: hypotheses and source tokens of sentence i, in `layers`.
  /// returns: [t, width]; rows equal those of decode() over whole hypotheses.
  virtual Tensor step(const nn::TokenRows& target, std::span<const nn::RowCache> layers,
                      const nn::CachedKeys& sources, const nn::Run& run) const = 0;

  /// The encoder's states of a source alone.
  Tensor hidden(const ModelInput& source, const nn::Run& run) const final {
    return encode(source, run);
  }

 private:
  EncoderDecoderFacts facts_;
};

/// Is of a format that transformers has not.
struct WithHubModel {
  /// The model that computes the same in transformers, made in `theirs`, which are shapes alone.
  /// own: its parameters    Errors: data, naming `source` and the field, where there is none.
  virtual std::unique_ptr<Model> hub_model(const nn::Parameters& own, nn::Parameters& theirs,
                                           const std::string& source) const = 0;
};

}  // namespace heddle
