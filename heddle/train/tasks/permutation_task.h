// Permutation language modelling as a task: Yang et al. 2019, "XLNet".
#pragma once

#include "heddle/train/tasks/task.h"

namespace heddle::train {

/// Errors: those of split_documents() and open_text_tokenizer(); data if the text gives no
/// sequence.
std::unique_ptr<Task> make_permutation_task(const TrainConfig& config, const RunPaths& paths,
                                            const std::string& run);

}  // namespace heddle::train
