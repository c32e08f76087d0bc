// The text of a training run, tokenised, and its tokenizer.
#pragma once

#include <optional>
#include <string>

#include "heddle/data/token_cache.h"
#include "heddle/text/known_words.h"
#include "heddle/text/tokenizer.h"
#include "heddle/train/config.h"
#include "heddle/train/run/run_paths.h"

namespace heddle::train {

struct Corpora {
  Tokenizer tokenizer;                        ///< of both sides, or of the source
  std::optional<Tokenizer> target_tokenizer;  ///< of the target, where it has tokens of its own
  TokenizedCorpus train, val;
  std::optional<KnownWords> known_source;  ///< of the training text; absent: they are too many

  const Tokenizer& target() const { return target_tokenizer ? *target_tokenizer : tokenizer; }
};

/// Checks that the files of a run's pairs are there, and that its model has a tokenizer or gets
/// one. Errors: usage if no folder is named, or a file in its place, or a model is to be made in a
/// format that is not heddle's own; data if the folder or a file is missing.
void check_pairs(const TrainConfig& config, const RunPaths& paths);

/// Opens the corpora of a run: writes the phrasebook to RUN/data if that is the corpus, trains or
/// copies the tokenizer to RUN/tokenizer.model (and the target's own to
/// RUN/target_tokenizer.model), unless the run begins from a model, whose tokenizers it has, and
/// tokenises into RUN/cache. All of it is made once, and is the same if made again. Errors: those
/// of TokenizedCorpus, load_model() and train_tokenizer(); data if the tokenizer's vocabulary is
/// not the model's.
Corpora open_corpora(const TrainConfig& config, const RunPaths& paths, const std::string& run);

}  // namespace heddle::train
