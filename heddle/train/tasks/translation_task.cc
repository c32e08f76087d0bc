// Batches of sentence pairs, their loss, and translations of held-out sentences.
#include "heddle/data/batches.h"
#include "heddle/infer/loading/loaded_model.h"
#include "heddle/infer/loading/model_dir.h"
#include "heddle/infer/loading/precision.h"
#include "heddle/train/batches/corpora.h"
#include "heddle/train/metrics/validation.h"
#include "heddle/train/tasks/stack_task.h"
#include "heddle/train/tasks/translation.h"

namespace heddle::train {

class TranslationTask final : public StackTask {
 public:
  using Fields = PairFields;
  static constexpr TaskFacts kFacts = {Head::target_token, "loss,bleu", 20'000};

  TranslationTask(const TrainConfig& config, const RunPaths& paths, const std::string& run)
      : StackTask(config, paths, run),
        corpora_(open_corpora(config, paths, run)),
        validator_(corpora_.val, corpora_.target(), validation_options(config),
                   &corpora_.tokenizer) {
    if (!paths.from.empty()) config_.stack.hub() = config_of_model(paths.from).hub();
    begin_model();
    translator_ = model().as<EncoderDecoder>();
    set_keys(corpora_.train.key(), corpora_.val.key());
  }

  int64_t batches(int64_t epoch) override {
    if (plan_epoch_ != epoch) {
      plan_ = plan_epoch(lengths(),
                         {.batch_tokens = own<Fields>().batch_tokens,
                          .sort_pool = own<Fields>().sort_pool,
                          .seed = seed()},
                         epoch);
      plan_epoch_ = epoch;
    }
    return plan_.size();
  }

  std::vector<std::vector<int64_t>> parts(int64_t epoch, int64_t batch, int64_t parts) override {
    batches(epoch);
    return split_batch(lengths(), plan_.batch(batch), parts);
  }

  ValidationScore validate(const nn::Run& run) override { return validator_(*translator_, run); }

  std::vector<Json> samples() override {
    std::vector<Json> samples;
    for (const SampleTranslation& t : validator_.samples(*translator_)) {
      Json& sample = samples.emplace_back(Json::object());
      sample["source"] = t.source;
      sample["reference"] = t.reference;
      sample["translation"] = t.translation;
    }
    return samples;
  }

  void save_model(const std::string& folder) const override {
    if (!model().config().is_own_format())
      copy_files_beside_weights(find_model_dir(paths_.from), folder);
    StackTask::save_model(folder);
    if (corpora_.known_source) corpora_.known_source->save(folder);
  }

 private:
  LossSums accumulate_whole(int64_t, std::span<const int64_t> pairs, const nn::Run& run) override {
    const EncoderDecoderFacts& facts = translator_->facts();
    const TranslationIds special{static_cast<int32_t>(facts.decoder_start_token_id),
                                 static_cast<int32_t>(facts.eos_token_id)};
    const int64_t passes = own<Fields>().r_drop > 0 ? 2 : 1;
    return accumulate_gradients(*translator_,
                                make_translation_batch(corpora_.train, pairs, special, passes), run,
                                own<Fields>().label_smoothing, own<Fields>().r_drop);
  }

  // Of other formats the files of the model that it was begun from are copied as they are.
  SaveOptions tokenizers() const override {
    if (!model().config().is_own_format()) return {};
    return {.tokenizer = &corpora_.tokenizer,
            .target = corpora_.target_tokenizer ? &*corpora_.target_tokenizer : nullptr};
  }

  std::vector<int64_t> batch_samples(int64_t, int64_t batch) override {
    const auto samples = plan_.batch(batch);
    return {samples.begin(), samples.end()};
  }

  static ValidationOptions validation_options(const TrainConfig& c) {
    const auto& own = c.task_config.as<Fields>();
    return {.batch_tokens = own.batch_tokens,
            .wants_bleu = c.select == "bleu" || c.early_stop == "bleu",
            .translate = {.search = {.beam = own.validation_beam},
                          .scores = false,
                          .precision = resolve_precision(c.precision)}};
  }

  PairLengths lengths() const {
    return {corpora_.train.source_lengths(), corpora_.train.target_lengths()};
  }

  Corpora corpora_;
  const EncoderDecoder* translator_ = nullptr;
  Validator validator_;
  BatchPlan plan_;
  int64_t plan_epoch_ = -1;
};

template std::unique_ptr<TaskFields> new_fields<TranslationTask>();

}  // namespace heddle::train
