// Texts as the model takes them, with the classes of their sequences or of their words.
#include "heddle/train/class_task.h"

#include <algorithm>

#include "heddle/base/log.h"
#include "heddle/data/labelled.h"
#include "heddle/data/text_blocks.h"
#include "heddle/train/class_loss.h"
#include "heddle/train/stack_task.h"
#include "heddle/train/text_tokenizer.h"

namespace heddle::train {
namespace {

constexpr int64_t kValidationBatch = 64;

// A text as ids with the special ones, and a class for it, or one a row (-1: none).
struct Example {
  Encoding encoding = {};
  std::vector<int32_t> classes = {};
  std::string text = {}, labels = {};
};

class ClassTask : public StackTask {
 public:
  ClassTask(const TrainConfig& config, const RunPaths& paths, const std::string& run)
      : StackTask(config, paths, run), is_words_(config.task == "token_classification") {
    LabelledSplit split = read_labelled({.files = document_files(config, paths),
                                         .label_key = config.label_key,
                                         .is_words = is_words_,
                                         .seed = seed()});
    std::vector<std::string> texts;
    for (const LabelledText& t : split.train)
      texts.push_back(fmt::format("{}", fmt::join(t.words, " ")));
    open_tokenizer(texts);
    make_model(is_words_ ? Head::word_classes : Head::sequence_classes, split.labels);
    labels_ = split.labels;
    most_ = block_size() - tokenizer().special_count();
    train_ = examples_of(split.train);
    val_ = examples_of(split.val);
    note_keys(joined(train_), joined(val_));
    log_info("{} texts to train on, {} held out, {} labels; {} texts were cut to {} words",
             train_.size(), val_.size(), labels_.size(), cut_, most_);
    plan_.emplace(static_cast<int64_t>(train_.size()), config.batch_size, seed());
  }

  int64_t batches(int64_t) override { return plan_->batches(); }

  LossSums accumulate_whole(int64_t, std::span<const int64_t> samples,
                            const nn::Run& run) override {
    SequenceBatch batch;
    for (const int64_t s : samples) add(batch, train_, s);
    return accumulate_classes(model(), batch, run);
  }

  ValidationScore validate(const nn::Run& run) override {
    LossSums sums;
    Confusion confusion(static_cast<int64_t>(labels_.size()));
    const auto n = static_cast<int64_t>(val_.size());
    for (int64_t begin = 0; begin < n; begin += kValidationBatch) {
      SequenceBatch batch;
      for (int64_t s = begin; s < std::min(begin + kValidationBatch, n); ++s) add(batch, val_, s);
      const Answers a = answer_classes(model(), batch, run);
      sums += a.sums;
      for (size_t i = 0; i < a.truths.size(); ++i) confusion.add(a.truths[i], a.answers[i]);
    }
    return {.loss = sums.nll / static_cast<double>(sums.words),
            .metrics = {{"accuracy", confusion.accuracy()}, {"macro_f1", confusion.macro_f1()}}};
  }

  std::vector<Json> samples() override {
    std::vector<Json> samples;
    const auto n = static_cast<int64_t>(val_.size()), count = std::min<int64_t>(6, n);
    for (int64_t i = 0; i < count; ++i) {
      SequenceBatch batch;
      add(batch, val_, i * n / count);
      std::vector<std::string> names;
      for (const int32_t c : answer_classes(model(), batch, {}).answers)
        names.push_back(labels_[c]);
      const Example& e = val_[static_cast<size_t>(i * n / count)];
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

  int32_t class_of(const std::string& label) const {
    return static_cast<int32_t>(std::lower_bound(labels_.begin(), labels_.end(), label) -
                                labels_.begin());
  }

  // The class of a word stands at its first piece. A text that is too long is cut at its end.
  Example example_of(const LabelledText& text) {
    std::vector<int32_t> ids, classes;
    for (size_t w = 0; w < text.words.size(); ++w) {
      const std::vector<int32_t> pieces = tokenizer().encode(text.words[w]);
      ids.insert(ids.end(), pieces.begin(), pieces.end());
      classes.resize(ids.size(), -1);
      if (!pieces.empty()) classes[ids.size() - pieces.size()] = class_of(text.labels[w]);
    }
    if (static_cast<int64_t>(ids.size()) > most_) {
      ids.resize(static_cast<size_t>(most_));
      classes.resize(ids.size());
      ++cut_;
    }
    Example e{.encoding = tokenizer().with_special(ids),
              .text = fmt::format("{}", fmt::join(text.words, " ")),
              .labels = fmt::format("{}", fmt::join(text.labels, " "))};
    check(!e.encoding.ids.empty(), ErrorKind::data, "{}: the text is empty", text.place);
    if (!is_words_) {
      e.classes = {class_of(text.labels[0])};
      return e;
    }
    e.classes.assign(e.encoding.ids.size(), -1);
    // The special words stand before and behind: where the text begins is where its ids do.
    const auto at =
        std::search(e.encoding.ids.begin(), e.encoding.ids.end(), ids.begin(), ids.end());
    std::copy(classes.begin(), classes.end(), e.classes.begin() + (at - e.encoding.ids.begin()));
    return e;
  }

  std::vector<Example> examples_of(const std::vector<LabelledText>& texts) {
    std::vector<Example> examples;
    for (const LabelledText& text : texts) examples.push_back(example_of(text));
    return examples;
  }

  static std::vector<int32_t> joined(const std::vector<Example>& examples) {
    std::vector<int32_t> all;
    for (const Example& e : examples) {
      all.insert(all.end(), e.encoding.ids.begin(), e.encoding.ids.end());
      all.insert(all.end(), e.classes.begin(), e.classes.end());
    }
    return all;
  }

  static void add(SequenceBatch& batch, const std::vector<Example>& examples, int64_t s) {
    const Example& e = examples[static_cast<size_t>(s)];
    batch.add(e.encoding.ids, s);
    batch.types.insert(batch.types.end(), e.encoding.types.begin(), e.encoding.types.end());
    batch.targets.insert(batch.targets.end(), e.classes.begin(), e.classes.end());
  }

  bool is_words_;
  std::vector<std::string> labels_;
  int64_t most_ = 0, cut_ = 0;
  std::vector<Example> train_, val_;
  std::optional<ShuffledPlan> plan_;
};

}  // namespace

std::unique_ptr<Task> make_class_task(const TrainConfig& config, const RunPaths& paths,
                                      const std::string& run) {
  return std::make_unique<ClassTask>(config, paths, run);
}

}  // namespace heddle::train
