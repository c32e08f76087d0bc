// Classification of texts, and of words, as tasks.
#pragma once

#include "heddle/train/tasks/task.h"

namespace heddle::train {

/// Task sequence_classification or token_classification. Errors: those of read_labelled() and
/// open_text_tokenizer().
std::unique_ptr<Task> make_class_task(const TrainConfig& config, const RunPaths& paths,
                                      const std::string& run);

}  // namespace heddle::train
