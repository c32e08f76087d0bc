// Texts as the model takes them, with the classes of their sequences or of their words.
#include <algorithm>

#include "heddle/base/log.h"
#include "heddle/base/progress.h"
#include "heddle/data/batches.h"
#include "heddle/data/labelled.h"
#include "heddle/train/batches/class_examples.h"
#include "heddle/train/tasks/class_loss.h"
#include "heddle/train/tasks/stack_task.h"

namespace heddle::train {
namespace {

struct ClassFields : TextFields {
  std::string label_key = "label";

  template <class V>
  void fields(V& v) {
    sequence_fields(v);
    v("label_key", label_key, "where it has its label, or the list of its words' labels");
    file_fields(v);
  }
};

}  // namespace

template <Head kHead>
class ClassTask final : public StackTask {
 public:
  using Fields = ClassFields;
  static constexpr TaskFacts kFacts = {kHead, "loss,accuracy,macro_f1", 3'000};

  ClassTask(const TrainConfig& config, const RunPaths& paths, const std::string& run)
      : StackTask(config, paths, run) {
    const auto& own = config.task_config.as<Fields>();
    LabelledSplit split = read_labelled({.files = own.files(paths),
                                         .label_key = own.label_key,
                                         .is_words = kHead == Head::token_classes,
                                         .seed = seed()});
    std::vector<std::string> texts;
    for (const LabelledText& t : split.train)
      texts.push_back(fmt::format("{}", fmt::join(t.words, " ")));
    open_tokenizer(texts);
    make_model(kHead, split.labels);
    labels_ = split.labels;
    most_ = block_size() - tokenizer().special_count();
    check(most_ >= 1, ErrorKind::usage, "block_size {} leaves {} tokens beside the special ones",
          block_size(), most_);
    train_ = examples_of(split.train);
    val_ = examples_of(split.val);
    note_keys(joined(train_), joined(val_));
    log_info("{} to train on, {} held out, {}{}", counted(std::ssize(train_), "text"),
             format_count(std::ssize(val_)), counted(std::ssize(labels_), "label"),
             cut_ == 0 ? ""
                       : fmt::format("; {} cut to {}", counted(cut_, "text was", "texts were"),
                                     counted(most_, "token")));
    plan_.emplace(static_cast<int64_t>(train_.size()), own.batch_size, seed());
  }

  int64_t batches(int64_t) override { return plan_->batches(); }

  LossSums accumulate_whole(int64_t, std::span<const int64_t> samples,
                            const nn::Run& run) override {
    SequenceBatch batch;
    for (const int64_t s : samples) add_example(batch, train_, s);
    return accumulate_classes(model(), batch.tokens(), batch.targets, run);
  }

  ValidationScore validate(const nn::Run& run) override {
    const AnswerScore score = score_answers(
        model(), answer_classes,
        {.classes = static_cast<int64_t>(labels_.size()),
         .samples = static_cast<int64_t>(val_.size()),
         .add = [this](SequenceBatch& batch, int64_t s) { add_example(batch, val_, s); }},
        run);
    return {.loss = score.loss(),
            .metrics = {{"accuracy", score.confusion.accuracy()},
                        {"macro_f1", score.confusion.macro_f1()}}};
  }

  std::vector<Json> samples() override {
    std::vector<Json> samples;
    const auto n = static_cast<int64_t>(val_.size()), count = std::min<int64_t>(6, n);
    for (int64_t i = 0; i < count; ++i) {
      SequenceBatch batch;
      add_example(batch, val_, i * n / count);
      std::vector<std::string> names;
      for (const int32_t c : answer_classes(model(), batch, {}).answers)
        names.push_back(labels_[c]);
      const ClassExample& e = val_[static_cast<size_t>(i * n / count)];
      Json& sample = samples.emplace_back(Json::object());
      sample["text"] = e.text;
      sample["label"] = e.labels;
      sample["model"] = fmt::format("{}", fmt::join(names, " "));
    }
    return samples;
  }

 private:
  std::vector<int64_t> batch_samples(int64_t epoch, int64_t batch) override {
    return plan_->batch(epoch, batch);
  }

  std::vector<ClassExample> examples_of(const std::vector<LabelledText>& texts) {
    return class_examples(
        tokenizer(), texts,
        {.labels = labels_, .is_words = kHead == Head::token_classes, .longest = most_}, cut_);
  }

  static std::vector<int32_t> joined(const std::vector<ClassExample>& examples) {
    std::vector<int32_t> all;
    for (const ClassExample& e : examples) {
      all.insert(all.end(), e.encoding.ids.begin(), e.encoding.ids.end());
      all.insert(all.end(), e.classes.begin(), e.classes.end());
    }
    return all;
  }

  std::vector<std::string> labels_;
  int64_t most_ = 0, cut_ = 0;
  std::vector<ClassExample> train_, val_;
  std::optional<ShuffledPlan> plan_;
};

template std::unique_ptr<TaskFields> new_fields<ClassTask<Head::sequence_classes>>();
template std::unique_ptr<TaskFields> new_fields<ClassTask<Head::token_classes>>();

}  // namespace heddle::train
