// Making, training in part and saving models of the registry.
#include "heddle/train/tasks/model_task.h"

#include <algorithm>

#include "heddle/base/log.h"
#include "heddle/base/progress.h"
#include "heddle/infer/loading/adapter.h"
#include "heddle/io/tensor_file.h"

namespace heddle::train {

StackConfig config_of_model(const std::string& from) {
  return StackConfig(load_model_config(from));
}

void check_data(const TrainConfig& config, const RunPaths& paths) {
  check(config.task_config->facts().has_teacher ||
            (paths.teacher.empty() && paths.unlabelled.empty()),
        ErrorKind::usage, "train: task {} has neither `teacher` nor `unlabelled` data",
        config.task);
  config.task_config->check_data(config, paths);
  if (config.lora_rank == 0) return;
  check(!paths.from.empty(), ErrorKind::usage,
        "train: adapters (lora_rank {}) stand on a model that is there; name it with `from`",
        config.lora_rank);
  check(!is_adapter_alone(find_model_dir(paths.from)), ErrorKind::usage,
        "train: {} is an adapter, and an adapter stands on a whole model; make it one with heddle "
        "export",
        paths.from);
}

void ModelTask::begin_model() {
  const StackConfig& stack = config_.stack;
  model_ = stack.make(nn::Scope(parameters_));
  const auto* order = model_->as<WithOrder>();
  check(order == nullptr || !order->runs_backwards(), ErrorKind::usage,
        "half of each batch of this {} runs backwards, which training has no batches for; give "
        "`bi_data` false",
        stack.type());
  std::vector<std::string> fresh;
  if (!paths_.from.empty()) {
    const LoadedModel base = load_model(paths_.from);
    check(base.type == stack.type(), ErrorKind::usage, "{} is a {}, but model_type is {}",
          paths_.from, base.type, stack.type());
    check(
        !base.parameters.is_quantized(), ErrorKind::usage,
        "train: the weights of {} are quantized, and rounded weights cannot be trained; begin with "
        "the model that heddle quantize made it of",
        paths_.from);
    CopiedWeights copied = copy_weights(base.parameters, *base.model, parameters_, *model_);
    fresh = std::move(copied.alone);
    if (!copied.left_out.empty()) {
      log_info("of {} the model has no place for: {}", paths_.from,
               fmt::join(copied.left_out, ", "));
    }
    // What the head of the file has no place for may be wanted here: a pooler under
    // BertForMaskedLM.
    if (!fresh.empty() && !is_adapter_alone(base.path)) {
      fresh = parameters_.load_some(*open_model_weights(base.path), model_->names(), fresh);
    }
    if (!fresh.empty()) {
      log_info("not in {}, begun by the seed: {}", paths_.from, fmt::join(fresh, ", "));
    }
  }
  take_weights();
  if (config_.layer_rate_decay < 1) rates_.emplace(parameters_, config_.layer_rate_decay);
  if (TrainedParts::is_wanted(config_)) {
    // The weights that the parts stand on, which the state of a run does not hold.
    begun_from_ = " on " + parameters_.checksum();
    parts_.emplace(config_, parameters_, fresh);
  }
  log_info("{} of {} parameters are trained", format_count(parameters().elements()),
           format_count(parameters_.elements()));
}

// Parts of equal numbers of samples, in order.
std::vector<std::vector<int64_t>> ModelTask::parts(int64_t epoch, int64_t batch, int64_t parts) {
  const std::vector<int64_t> samples = batch_samples(epoch, batch);
  const auto n = static_cast<int64_t>(samples.size()), count = std::min(parts, n);
  std::vector<std::vector<int64_t>> out;
  for (int64_t i = 0; i < count; ++i) {
    out.emplace_back(samples.begin() + i * n / count, samples.begin() + (i + 1) * n / count);
  }
  return out;
}

double ModelTask::rate_factor(const nn::Parameter& parameter) const {
  return rates_ ? rates_->factor(parameter) : 1;
}

LossSums ModelTask::accumulate(int64_t epoch, std::span<const int64_t> samples,
                               const nn::Run& run) {
  const LossSums sums = accumulate_whole(epoch, samples, run);
  if (parts_) parts_->take_gradients();
  return sums;
}

std::vector<int64_t> ModelTask::spread(int64_t n, int64_t most) {
  std::vector<int64_t> samples;
  const int64_t count = std::min(most, n);
  for (int64_t i = 0; i < count; ++i) samples.push_back(i * n / count);
  return samples;
}

// An adapter has its model's config beside it, with the head that it was trained with.
void ModelTask::save_model(const std::string& folder) const {
  SaveOptions options = save_options();
  const bool has_adapter = parts_ && parts_->has_adapter();
  options.has_weights = !has_adapter || config_.lora_merge;
  heddle::save_model(folder, *model_, parameters_, options);
  if (has_adapter) parts_->save_adapter(folder, find_model_dir(paths_.from));
}

}  // namespace heddle::train
