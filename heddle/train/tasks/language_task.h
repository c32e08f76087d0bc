// Language modelling as a task: each token of a running text predicts the next.
#pragma once

#include "heddle/train/tasks/task.h"

namespace heddle::train {

/// Errors: those of split_documents() and open_text_tokenizer(); data if the text is shorter than a
/// sequence; usage if block_size is more than the model takes.
std::unique_ptr<Task> make_language_task(const TrainConfig& config, const RunPaths& paths,
                                         const std::string& run);

}  // namespace heddle::train
