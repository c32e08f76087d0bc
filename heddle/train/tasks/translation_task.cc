// Batches of sentence pairs, their loss, and translations of held-out sentences.
#include "heddle/train/tasks/translation_task.h"

#include "heddle/data/batches.h"
#include "heddle/infer/loading/model_dir.h"
#include "heddle/infer/loading/precision.h"
#include "heddle/train/metrics/validation.h"
#include "heddle/train/tasks/translation.h"

namespace heddle::train {
namespace {

class TranslationTask : public Task {
 public:
  TranslationTask(const TrainConfig& config, const std::string& data, const std::string& run)
      : config_(config),
        corpora_(open_corpora(config, data, run)),
        parameters_(static_cast<uint64_t>(config.seed)),
        model_(nn::Scope(parameters_), config.model),
        validator_(corpora_.val, corpora_.target(), validation_options(config),
                   &corpora_.tokenizer) {}

  nn::Parameters& parameters() override { return parameters_; }
  std::string training_key() const override { return corpora_.train.key(); }
  std::string validation_key() const override { return corpora_.val.key(); }

  int64_t batches(int64_t epoch) override {
    if (plan_epoch_ != epoch) {
      plan_ = plan_epoch(lengths(),
                         {.batch_tokens = config_.batch_tokens,
                          .sort_pool = config_.sort_pool,
                          .seed = static_cast<uint64_t>(config_.seed)},
                         epoch);
      plan_epoch_ = epoch;
    }
    return plan_.size();
  }

  std::vector<std::vector<int64_t>> parts(int64_t epoch, int64_t batch, int64_t parts) override {
    batches(epoch);
    return split_batch(lengths(), plan_.batch(batch), parts);
  }

  LossSums accumulate(int64_t, std::span<const int64_t> pairs, const nn::Run& run) override {
    const int64_t passes = config_.r_drop > 0 ? 2 : 1;
    return accumulate_gradients(model_,
                                make_translation_batch(corpora_.train, pairs, special_, passes),
                                run, config_.label_smoothing, config_.r_drop);
  }

  ValidationScore validate(const nn::Run& run) override { return validator_(model_, run); }

  std::vector<Json> samples() override {
    std::vector<Json> samples;
    for (const SampleTranslation& t : validator_.samples(model_)) {
      Json& sample = samples.emplace_back(Json::object());
      sample["source"] = t.source;
      sample["reference"] = t.reference;
      sample["translation"] = t.translation;
    }
    return samples;
  }

  void save_model(const std::string& folder) const override {
    save_model_dir(folder, config_.model, parameters_, &corpora_.tokenizer,
                   corpora_.target_tokenizer ? &*corpora_.target_tokenizer : nullptr);
    if (corpora_.known_source) corpora_.known_source->save(folder);
  }

 private:
  static ValidationOptions validation_options(const TrainConfig& c) {
    return {.batch_tokens = c.batch_tokens,
            .wants_bleu = c.select == "bleu" || c.early_stop == "bleu",
            .translate = {.beam = c.validation_beam,
                          .scores = false,
                          .precision = resolve_precision(c.precision)}};
  }

  PairLengths lengths() const {
    return {corpora_.train.source_lengths(), corpora_.train.target_lengths()};
  }

  TrainConfig config_;
  Corpora corpora_;
  nn::Parameters parameters_;
  Transformer model_;
  Validator validator_;
  TranslationIds special_{static_cast<int32_t>(config_.model.decoder_start_token_id),
                          static_cast<int32_t>(config_.model.eos_token_id)};
  BatchPlan plan_;
  int64_t plan_epoch_ = -1;
};

}  // namespace

std::unique_ptr<Task> make_translation_task(const TrainConfig& config, const std::string& data,
                                            const std::string& run) {
  return std::make_unique<TranslationTask>(config, data, run);
}

}  // namespace heddle::train
