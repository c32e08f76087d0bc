// How well a language model predicts a text that is longer than its context.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "heddle/models/token_model.h"
#include "heddle/tensor/dtype.h"

namespace heddle {

struct PerplexityOptions {
  /// Tokens of a window; 0: as many as the model takes. Of a model with memory: tokens of a
  /// segment; 0: as many as it remembers, or 512.
  int64_t context = 0;
  /// Tokens that a window predicts beyond those of the window before; 0: half the context. Smaller
  /// ones give each token more of its past and take more time. Not for models with memory.
  int64_t stride = 0;
  bool memory = true;           ///< false: each segment begins as a text does
  int64_t batch_tokens = 8192;  ///< tokens that are worked on at once
  Precision precision = {};
  int64_t details = 0;  ///< predicted tokens of which TextLikelihood::details tells, from the first
};

/// How a token was predicted.
struct PredictedToken {
  float log_p = 0;
  int64_t rank = 0;       ///< tokens that the model holds for likelier, and 1; the lower id first
  int32_t likeliest = 0;  ///< among equal ones
  float likeliest_log_p = 0;
};

struct TextLikelihood {
  double nll = 0;      ///< sum of -log p of the tokens, nats
  int64_t tokens = 0;  ///< that were predicted: all but the first
  int64_t hits = 0;    ///< that the model holds for likeliest, the lower id first among equal ones
  int64_t windows = 0;
  int64_t context = 0, stride = 0;  ///< as they were used
  /// Of a model with memory: states that it carried from segment to segment; -1: it has none.
  int64_t memory = -1;
  /// Of a mixture: [layer][expert] how many of the tokens that predict another went through it;
  /// each went through as many experts as the config says. Empty for other models.
  std::vector<std::vector<int64_t>> routing = {};
  /// Of the second token of the text and those behind it, as many as the options ask for.
  std::vector<PredictedToken> details = {};
};

/// What some windows of a text predict, see TextPrediction.
struct WindowsLikelihood {
  std::vector<double> nll = {};  ///< of each window
  int64_t tokens = 0, hits = 0;
  std::vector<std::vector<int64_t>> routing = {};
  std::vector<PredictedToken> details = {};

  template <class V>
  void parts(V& v) {
    v(nll, tokens, hits, routing, details);
  }
};

/// likelihood_of_text() in parts, which may be predicted in any order, and elsewhere. The text and
/// the model live as long.
class TextPrediction {
 public:
  /// Errors: those of likelihood_of_text().
  TextPrediction(const LanguageModel& model, std::span<const int32_t> ids,
                 PerplexityOptions options);
  ~TextPrediction();
  TextPrediction(const TextPrediction&) = delete;
  TextPrediction& operator=(const TextPrediction&) = delete;

  /// How many there are; one of a model that carries a memory along the text.
  int64_t parts() const;
  WindowsLikelihood predict(int64_t part) const;
  /// Of all parts, in order.
  TextLikelihood join(std::span<const WindowsLikelihood> all) const;

 private:
  struct Impl;
  std::unique_ptr<const Impl> impl_;
};

/// Predicts each token of a text but the first once, by windows of `context` tokens that begin
/// every `stride` tokens: a token sees at least context - stride tokens before it, or all there
/// are. What is computed does not depend on batch_tokens, bit for bit. A model with memory reads
/// segments of `context` tokens end to end, of which each predicts the next, and carries its memory
/// along them. Errors: usage for a context below 2 or beyond what the model takes, a stride that is
/// not below the context, or one for a model with memory; data for a text of less than 2 tokens, or
/// an id that is not in the vocabulary.
TextLikelihood likelihood_of_text(const LanguageModel& model, std::span<const int32_t> ids,
                                  PerplexityOptions options);

}  // namespace heddle
