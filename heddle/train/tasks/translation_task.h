// Translation as a task: the encoder-decoder on parallel text, scored by loss and BLEU.
#pragma once

#include "heddle/train/batches/corpora.h"
#include "heddle/train/tasks/task.h"

namespace heddle::train {

/// `data`: folder of {train,val}.{src,tgt}; not read if the corpus is the phrasebook.
/// Errors: those of open_corpora().
std::unique_ptr<Task> make_translation_task(const TrainConfig& config, const std::string& data,
                                            const std::string& run);

}  // namespace heddle::train
