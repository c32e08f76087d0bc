// How good a translator is on held-out text.
#pragma once

#include <string>
#include <vector>

#include "heddle/data/token_cache.h"
#include "heddle/infer/decoding/translate.h"
#include "heddle/models/encoder_decoder.h"
#include "heddle/train/metrics/validation_score.h"

namespace heddle::train {

/// A held-out sentence and what the model makes of it.
struct SampleTranslation {
  std::string source, reference, translation;
};

struct ValidationOptions {
  int64_t batch_tokens = 4096;
  bool wants_bleu = false;
  TranslateOptions translate;
};

/// Validates on one corpus again and again: the loss over target tokens, the end included, and
/// sacreBLEU as metric "bleu" (0 to 100) if it is wanted. The tokenizer is the target's, `source`
/// that of the source if it is another. References are the decoded target ids.
class Validator {
 public:
  Validator(const TokenizedCorpus& corpus, const Tokenizer& tokenizer,
            const ValidationOptions& options, const Tokenizer* source = nullptr);
  ValidationScore operator()(const EncoderDecoder& model, const nn::Run& run) const;
  /// Six sentences, spread evenly over the corpus, translated greedily.
  std::vector<SampleTranslation> samples(const EncoderDecoder& model) const;

 private:
  const TokenizedCorpus* corpus_;
  const Tokenizer *tokenizer_, *source_tokenizer_;
  ValidationOptions options_;
  std::vector<std::vector<int32_t>> sources_;
  std::vector<std::string> references_;
};

}  // namespace heddle::train
