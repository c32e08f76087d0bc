// The table of tasks, a line each.
#include "heddle/train/task_config.h"

#include <algorithm>
#include <array>

#include "heddle/base/error.h"
#include "heddle/models/registry.h"

namespace heddle::train {

template <Head head>
class ClassTask;

struct TaskEntry {
  const char* name;
  std::unique_ptr<TaskFields> (*fields)();
};

constexpr std::array kTasks = {
    TaskEntry{"translation", new_fields<class TranslationTask>},
    TaskEntry{"causal_lm", new_fields<class LanguageTask>},
    TaskEntry{"masked_lm", new_fields<class MaskedTask>},
    TaskEntry{"permutation_lm", new_fields<class PermutationTask>},
    TaskEntry{"sequence_classification", new_fields<ClassTask<Head::sequence_classes>>},
    TaskEntry{"token_classification", new_fields<ClassTask<Head::token_classes>>},
};

TaskConfig::TaskConfig(const std::string& task) {
  for (const TaskEntry& entry : kTasks) {
    if (task == entry.name) fields_ = entry.fields();
  }
  check(fields_ != nullptr, ErrorKind::usage, "there is no task '{}'{}; the tasks are: {}", task,
        did_you_mean(task, task_names()), fmt::join(task_names(), ", "));
}

std::vector<std::string> task_names() {
  std::vector<std::string> names;
  for (const TaskEntry& entry : kTasks) names.emplace_back(entry.name);
  return names;
}

std::vector<std::string> trainable_types(Head head) {
  std::vector<std::string> types = {default_model_type(head)};
  for (const std::string& type : model_types()) {
    const std::vector<HeadClass> heads = model_config(type)->heads();
    const bool has_head =
        std::any_of(heads.begin(), heads.end(), [&](const HeadClass& h) { return h.head == head; });
    if (has_head && type != types[0]) types.push_back(type);
  }
  return types;
}

std::string task_of_type(const std::string& model_type) {
  for (const TaskEntry& entry : kTasks) {
    const std::vector<std::string> types = trainable_types(entry.fields()->facts().head);
    if (std::find(types.begin(), types.end(), model_type) != types.end()) return entry.name;
  }
  fail(ErrorKind::usage, "no task trains a {}", model_type);
}

std::string task_of_head(Head head) {
  for (const TaskEntry& entry : kTasks) {
    if (head != Head::none && head == entry.fields()->facts().head) return entry.name;
  }
  return "";
}

}  // namespace heddle::train
