// Batches of sentence pairs, their loss, its validation and BLEU, translations of held-out
// sentences.
#include <optional>

#include "heddle/base/log.h"
#include "heddle/base/rng.h"
#include "heddle/data/batches.h"
#include "heddle/dist/share_out.h"
#include "heddle/infer/decoding/translate.h"
#include "heddle/infer/loading/adapter.h"
#include "heddle/infer/loading/loaded_model.h"
#include "heddle/io/tensor_file.h"
#include "heddle/text/subword_sampler.h"
#include "heddle/train/batches/corpora.h"
#include "heddle/train/metrics/metrics.h"
#include "heddle/train/metrics/significance.h"
#include "heddle/train/ranks/rank_messages.h"
#include "heddle/train/tasks/losses.h"
#include "heddle/train/tasks/model_task.h"
#include "heddle/train/tasks/search_tuning.h"
#include "heddle/train/tasks/training_links.h"
#include "heddle/train/tasks/word_teacher.h"

namespace heddle::train {

class TranslationTask final : public ModelTask {
 public:
  using Fields = PairFields;
  static constexpr TaskFacts kFacts = {
      .head = Head::target_token, .scores = "loss,bleu", .updates = 20'000, .has_teacher = true};

  TranslationTask(const TrainConfig& config, const RunPaths& paths, const std::string& run)
      : ModelTask(config, paths, run), corpora_(open_corpora(config, paths, run)) {
    const double of_source = own<Fields>().source_sampling,
                 of_target = own<Fields>().target_sampling;
    if (of_source > 0) source_sampler_.emplace(corpora_.tokenizer, of_source);
    if (of_target > 0) target_sampler_.emplace(corpora_.target(), of_target);
    if (wants_bleu() || own<Fields>().tuned_beam > 0) {
      for (int64_t i = 0; i < corpora_.val.size(); ++i) sources_.push_back(source_of(i));
      references_ = held_out_targets(corpora_);
    }
    if (!paths.from.empty()) take_base(paths.from);
    begin_model();
    translator_ = model().as<EncoderDecoder>();
    if (!paths.teacher.empty() && own<Fields>().teaching == "word") {
      teacher_.emplace(paths.teacher, corpora_, translator_->facts(), own<Fields>().max_tokens);
    }
    if (own<Fields>().guided_alignment > 0) links_.emplace(corpora_);
    const std::string around = marks_key();
    set_keys(corpora_.train.key() + (teacher_ ? " taught by " + teacher_->key() : "") + around,
             corpora_.val.key() + around);
  }

  int64_t batches(int64_t epoch) override {
    if (plan_epoch_ != epoch) {
      plan_ = plan_epoch(lengths_of(corpora_.train),
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
    return split_batch(lengths_of(corpora_.train), plan_.batch(batch), parts);
  }

  // The loss over target tokens, the end included, and sacreBLEU (0 to 100) if it is wanted.
  ValidationScore validate(const nn::Run& run, dist::Group& group) override {
    const BatchPlan plan =
        plan_epoch(lengths_of(corpora_.val),
                   {.batch_tokens = own<Fields>().batch_tokens, .shuffle = false}, 0);
    const auto loss_of = [&](int64_t i) {
      const auto batch = make_translation_batch(corpora_.val, plan.batch(i), corpora_.marks);
      return batch_loss(*translator_, batch, run);
    };
    const LossSums sums = shared_loss(group, plan.size(), loss_of);
    ValidationScore score{.loss = sums.nll / static_cast<double>(sums.predicted)};
    if (!wants_bleu()) return score;
    const auto hypotheses = dist::share_out<std::string>(
        group, std::ssize(sources_), [&](std::span<const int64_t> sentences) {
          std::vector<std::vector<int32_t>> some;
          for (const int64_t i : sentences) some.push_back(sources_[static_cast<size_t>(i)]);
          return translated(some, own<Fields>().validation_beam);
        });
    const ResampledScore bleu = resampled_bleu(hypotheses, references_);
    score.metrics = {{"bleu", bleu.score, bleu.half_width}};
    return score;
  }

  // Translated greedily; the reference is what the target's ids say.
  std::vector<Json> samples() override {
    const std::vector<int64_t> chosen = spread(corpora_.val.size(), 6);
    std::vector<std::vector<int32_t>> sources;
    for (const int64_t i : chosen) sources.push_back(source_of(i));
    const std::vector<std::string> translations = translated(sources, 1);
    std::vector<Json> samples;
    for (size_t k = 0; k < chosen.size(); ++k) {
      samples.push_back(Json::object({{"source", corpora_.tokenizer.decode(sources[k])},
                                      {"reference", held_out_target(chosen[k])},
                                      {"translation", translations[k]}}));
    }
    return samples;
  }

  void save_model(const std::string& folder) const override {
    if (!model().config().is_own_format())
      copy_files_beside_weights(find_model_dir(paths_.from), folder);
    save_languages(folder);
    ModelTask::save_model(folder);
    if (corpora_.known_source) corpora_.known_source->save(folder);
  }

  void finish(const std::string& best, dist::Group& group) override {
    const int64_t beam = own<Fields>().tuned_beam;
    if (beam == 0) return;
    std::optional<LoadedModel> loaded;
    dist::do_alike(group, [&] { loaded = load_translation_model(best); });
    const LoadedModel& model = *loaded;
    check_same_model(group, best, model.parameters);
    TranslateOptions options = default_options(model);
    options.search.beam = beam;
    options.precision = resolve_precision(config_.precision);
    const TunedSearch tuned = tune_search(model, sources_, references_, options, group);
    group.barrier();  // all have read what is written to now
    if (group.rank() != 0) return;
    save_search(best, tuned);
    log_info(
        "search: beam {}, length penalty {:.1f}: validation BLEU {:.2f} ± {:.2f} ({:.2f} with 1)",
        tuned.beam, tuned.length_penalty, tuned.bleu.score, tuned.bleu.half_width, tuned.bleu_at_1);
  }

 private:
  // What a run's settings, which hold the fields alone, say nothing of.
  void take_base(const std::string& from) {
    config_.stack.hub() = config_of_model(from).hub();
    const std::string folder = find_model_dir(from);
    if (!is_adapter_alone(folder)) config_.stack.config().fit(*open_model_weights(folder));
  }

  // So that what was trained needs not be told its languages again.
  void save_languages(const std::string& folder) const {
    const auto& [source, target] = corpora_.languages;
    if (!source.empty()) {
      const std::string path = join_path(folder, "tokenizer_config.json");
      Json json = path_exists(path) ? Json::load(path) : Json::object();
      json["src_lang"] = source;
      json["tgt_lang"] = target;
      write_file_atomic(path, json.dump(2) + "\n");
    }
    if (target.empty()) return;
    const std::vector<int32_t>& start = corpora_.marks.target_start;
    Json begin = Json::object({{"decoder_start_token_id", start[0]}});
    if (start.size() > 1) begin["forced_bos_token_id"] = start[1];
    save_generation(folder, begin, find_model_dir(paths_.from));
  }

  // What of them is other than in models of one language pair.
  std::string marks_key() const {
    const PairMarks& marks = corpora_.marks;
    if (marks == usual_marks(translator_->facts())) return "";
    return fmt::format(" around them {}; {}; {}", fmt::join(marks.source_start, ","),
                       fmt::join(marks.source_end, ","), fmt::join(marks.target_start, ","));
  }

  LossSums accumulate_whole(int64_t epoch, std::span<const int64_t> pairs,
                            const nn::Run& run) override {
    const auto batch = make_translation_batch(
        corpora_.train, pairs, corpora_.marks,
        {.passes = own<Fields>().r_drop > 0 ? 2 : 1,
         .source = resegment(source_sampler_, epoch, hash_name("train/source subwords")),
         .target = resegment(target_sampler_, epoch, hash_name("train/target subwords"))});
    const double smoothing = own<Fields>().label_smoothing;
    AttentionGuide guide;
    if (links_) guide = {links_->wanted(batch), own<Fields>().guided_alignment};
    if (!teacher_) {
      return accumulate_gradients(*translator_, batch, run, smoothing, own<Fields>().r_drop, guide);
    }
    return accumulate_taught(*translator_, batch, run, smoothing,
                             teacher_->probabilities(batch, run), own<Fields>().teacher_weight,
                             guide);
  }

  // A pure function of seed, epoch and pair. Sentences that become too long stay as they are.
  Resegment resegment(const std::optional<SubwordSampler>& sampler, int64_t epoch,
                      uint64_t site) const {
    if (!sampler) return {};
    const auto longest = static_cast<size_t>(own<Fields>().max_tokens);
    return [this, &sampler, epoch, site, longest](std::vector<int32_t> ids, int64_t pair) {
      RngStream random(
          make_key(seed(), static_cast<uint64_t>(epoch), site, static_cast<uint64_t>(pair)));
      std::vector<int32_t> drawn;
      sampler->sample(ids, random, drawn);
      return drawn.size() < longest ? drawn : ids;
    };
  }

  // Of other formats the files of the model that it was begun from are copied as they are.
  SaveOptions save_options() const override {
    if (!model().config().is_own_format()) return {};
    return {.tokenizer = &corpora_.tokenizer,
            .target = corpora_.target_tokenizer ? &*corpora_.target_tokenizer : nullptr,
            .searched_as = paths_.from.empty() ? "" : find_model_dir(paths_.from)};
  }

  bool wants_bleu() const { return config_.select == "bleu" || config_.early_stop == "bleu"; }

  // A held-out one, without what stands behind it.
  std::vector<int32_t> source_of(int64_t i) const {
    std::vector<int32_t> ids = corpora_.val.source(i).ids();
    const auto& start = corpora_.marks.source_start;
    ids.insert(ids.begin(), start.begin(), start.end());
    return ids;
  }

  std::string held_out_target(int64_t i) const {
    return corpora_.target().decode(corpora_.val.target(i).ids());
  }

  std::vector<std::string> translated(const std::vector<std::vector<int32_t>>& sources,
                                      int64_t beam) const {
    TranslateOptions options = {.search = {.beam = beam},
                                .scores = false,
                                .precision = resolve_precision(config_.precision)};
    set_marks(options, corpora_.marks);
    suppress_unknown(options.search, corpora_.target());
    std::vector<std::string> texts;
    for (const Translation& t : translate_ids(*translator_, sources, options)) {
      texts.push_back(corpora_.target().decode(t.ids));
    }
    return texts;
  }

  static PairLengths lengths_of(const TokenizedCorpus& corpus) {
    return {corpus.source_lengths(), corpus.target_lengths()};
  }

  Corpora corpora_;
  std::optional<SubwordSampler> source_sampler_, target_sampler_;
  const EncoderDecoder* translator_ = nullptr;
  std::optional<WordTeacher> teacher_;
  std::optional<TrainingLinks> links_;
  std::vector<std::vector<int32_t>> sources_;  // held-out ones, where BLEU is wanted
  std::vector<std::string> references_;
  BatchPlan plan_;
  int64_t plan_epoch_ = -1;
};

template std::unique_ptr<TaskFields> new_fields<TranslationTask>();

}  // namespace heddle::train
