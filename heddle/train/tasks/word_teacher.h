// A translator whose distributions a student learns: word-level distillation.
#pragma once

#include <string>

#include "heddle/data/batches.h"
#include "heddle/infer/loading/loaded_model.h"
#include "heddle/train/batches/corpora.h"

namespace heddle::train {

/// Source: Kim & Rush 2016, "Sequence-Level Knowledge Distillation", section 3.1.
class WordTeacher {
 public:
  /// path: a folder, or a run; longest: tokens of a sentence. Errors: those of
  /// load_translation_model(); data if its tokenizers or special ids are not those of the student,
  /// or it has not as many positions.
  WordTeacher(const std::string& path, const Corpora& corpora, const EncoderDecoderFacts& student,
              int64_t longest);

  /// What it expects behind each token of the targets, without dropout: [t, vocab] f32, each row a
  /// distribution. The pass is in the precision of `run`.
  Tensor probabilities(const TranslationBatch& batch, const nn::Run& run) const;

  /// The checksum of its weights.
  std::string key() const { return loaded_.parameters.checksum(); }

 private:
  LoadedModel loaded_;
};

}  // namespace heddle::train
