// The tasks by their names.
#include "heddle/train/tasks/task.h"

#include "heddle/train/tasks/class_task.h"
#include "heddle/train/tasks/language_task.h"
#include "heddle/train/tasks/masked_task.h"
#include "heddle/train/tasks/permutation_task.h"
#include "heddle/train/tasks/stack_task.h"
#include "heddle/train/tasks/translation_task.h"

namespace heddle::train {

void check_data(const TrainConfig& config, const RunPaths& paths) {
  config.head() == Head::target_token ? check_pairs(config, paths) : check_texts(config, paths);
  check_adapters(config, paths);
}

std::unique_ptr<Task> make_task(const TrainConfig& config, const RunPaths& paths,
                                const std::string& run) {
  if (config.task == "translation") return make_translation_task(config, paths, run);
  if (config.task == "causal_lm") return make_language_task(config, paths, run);
  if (config.task == "masked_lm") return make_masked_task(config, paths, run);
  if (config.task == "permutation_lm") return make_permutation_task(config, paths, run);
  return make_class_task(config, paths, run);
}

}  // namespace heddle::train
