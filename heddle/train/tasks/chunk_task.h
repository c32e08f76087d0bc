// What the tasks over documents cut into sequences have in common: the sequences and their order.
#pragma once

#include <optional>

#include "heddle/data/batches.h"
#include "heddle/train/batches/masked_sequences.h"
#include "heddle/train/tasks/stack_task.h"

namespace heddle::train {

class ChunkTask : public StackTask {
 public:
  int64_t batches(int64_t) override { return plan_->batches(); }

 protected:
  using StackTask::StackTask;

  /// Cuts the documents into sequences that leave room for `special` ids, once the model is made.
  /// Errors: usage if block_size leaves no room; data if no sequence is left to train or validate.
  void cut(const DocumentSplit& split, int64_t special);

  Chunks train_, val_;

 private:
  std::vector<int64_t> batch_samples(int64_t epoch, int64_t batch) override {
    return plan_->batch(epoch, batch);
  }

  std::optional<ShuffledPlan> plan_;
};

}  // namespace heddle::train
