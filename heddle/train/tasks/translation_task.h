// Translation as a task: the encoder-decoder on parallel text, scored by loss and BLEU.
#pragma once

#include "heddle/train/batches/corpora.h"
#include "heddle/train/tasks/task.h"

namespace heddle::train {

/// paths.data: folder of {train,val}.{src,tgt}; not read if the corpus is the phrasebook.
/// Errors: those of open_corpora() and load_model().
std::unique_ptr<Task> make_translation_task(const TrainConfig& config, const RunPaths& paths,
                                            const std::string& run);

}  // namespace heddle::train
