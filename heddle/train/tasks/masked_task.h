// Masked language modelling as a task: Devlin et al. 2019, section 3.1.
#pragma once

#include "heddle/train/tasks/task.h"

namespace heddle::train {

/// Errors: those of split_documents() and open_text_tokenizer(); usage if the tokenizer has no
/// token that hides others.
std::unique_ptr<Task> make_masked_task(const TrainConfig& config, const RunPaths& paths,
                                       const std::string& run);

}  // namespace heddle::train
