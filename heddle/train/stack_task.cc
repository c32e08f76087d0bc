// Making, scoring and saving models of the registry.
#include "heddle/train/stack_task.h"

#include <algorithm>

#include "heddle/base/files.h"
#include "heddle/infer/stack_model.h"
#include "heddle/train/text_tokenizer.h"

namespace heddle::train {

DocumentFiles document_files(const TrainConfig& c, const RunPaths& paths) {
  return {paths.data, paths.val_data, c.val_share, c.text_key};
}

void check_texts(const TrainConfig& config, const RunPaths& paths) {
  check(!paths.data.empty(), ErrorKind::usage,
        "train needs --data, a file or a folder of them, for task {}", config.task);
  find_text_files(document_files(config, paths));
}

void StackTask::open_tokenizer(std::span<const std::string> texts) {
  tokenizer_ = open_text_tokenizer(config_, texts, "", run_);
}

void StackTask::make_model(Head head, const std::vector<std::string>& labels) {
  StackConfig& stack = config_.stack;
  stack.set("vocab_size", tokenizer_->vocab_size());
  stack.hub().head = head;
  if (!labels.empty()) stack.hub().labels = labels;
  if (tokenizer_->pad_id() >= 0) stack.hub().pad_token_id = tokenizer_->pad_id();
  model_ = stack.make(nn::Scope(parameters_));
}

void StackTask::note_keys(std::span<const int32_t> train, std::span<const int32_t> val) {
  const auto key = [&](std::span<const int32_t> ids) {
    return fmt::format("{} {}", checksum(std::as_bytes(ids)), tokenizer_->fingerprint());
  };
  training_key_ = key(train);
  validation_key_ = key(val);
}

int64_t StackTask::block_size() const {
  const int64_t most = model_->max_length();
  check(config_.block_size <= most, ErrorKind::usage,
        "block_size {} is more than the {} words that the model takes; lower --block-size",
        config_.block_size, most);
  return config_.block_size > 0 ? config_.block_size : most;
}

// Parts of equal numbers of samples, in order.
std::vector<std::vector<int64_t>> StackTask::parts(int64_t epoch, int64_t batch, int64_t parts) {
  const std::vector<int64_t> samples = batch_samples(epoch, batch);
  const auto n = static_cast<int64_t>(samples.size()), count = std::min(parts, n);
  std::vector<std::vector<int64_t>> out;
  for (int64_t i = 0; i < count; ++i) {
    out.emplace_back(samples.begin() + i * n / count, samples.begin() + (i + 1) * n / count);
  }
  return out;
}

void StackTask::save_model(const std::string& folder) const {
  save_stack_model(folder, *model_, parameters_);
  tokenizer_->save_folder(folder);
}

}  // namespace heddle::train
