// Texts as the model takes them, with the classes of their sequences or of their words.
#include <algorithm>

#include "heddle/base/log.h"
#include "heddle/base/progress.h"
#include "heddle/base/rng.h"
#include "heddle/data/batches.h"
#include "heddle/data/labelled.h"
#include "heddle/train/tasks/losses.h"
#include "heddle/train/tasks/text_task.h"

namespace heddle::train {
namespace {

struct ClassFields : TextFields {
  std::string label_key = "label";

  template <class V>
  void fields(V& v) {
    sequence_fields(v);
    subword_fields(v);
    v("label_key", label_key, "where it has its label, or the list of its words' labels");
    file_fields(v);
  }
};

}  // namespace

template <Head kHead>
class ClassTask final : public TextTask {
 public:
  using Fields = ClassFields;
  static constexpr TaskFacts kFacts = {kHead, "loss,accuracy,macro_f1", 3'000};

  ClassTask(const TrainConfig& config, const RunPaths& paths, const std::string& run)
      : TextTask(config, paths, run) {
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
    shuffle(std::ssize(train_), text().batch_size);
  }

  LossSums accumulate_whole(int64_t epoch, std::span<const int64_t> samples,
                            const nn::Run& run) override {
    SequenceBatch batch;
    for (const int64_t s : samples) {
      if (sampler()) {
        const ClassExample e = drawn(epoch, s);
        batch.add(e.encoding.ids, s, e.classes, e.encoding.types);
      } else {
        add_example(batch, train_, s);
      }
    }
    return accumulate_classes(model(), batch.tokens(), batch.targets, run);
  }

  ValidationScore validate(const nn::Run& run, dist::Group& group) override {
    const AnswerScore score = score_answers(
        model(), answer_classes,
        {.classes = static_cast<int64_t>(labels_.size()),
         .samples = static_cast<int64_t>(val_.size()),
         .add = [this](SequenceBatch& batch, int64_t s) { add_example(batch, val_, s); }},
        run, group);
    return {.loss = score.loss(),
            .metrics = {{"accuracy", score.confusion.accuracy()},
                        {"macro_f1", score.confusion.macro_f1()}}};
  }

  std::vector<Json> samples() override {
    std::vector<Json> samples;
    for (const int64_t s : spread(std::ssize(val_), 6)) {
      SequenceBatch batch;
      add_example(batch, val_, s);
      std::vector<std::string> names;
      for (const int32_t c : answer_classes(model(), batch, {}).answers)
        names.push_back(labels_[c]);
      const ClassExample& e = val_[static_cast<size_t>(s)];
      samples.push_back(Json::object({{"text", e.text},
                                      {"label", e.labels},
                                      {"model", fmt::format("{}", fmt::join(names, " "))}}));
    }
    return samples;
  }

 private:
  // An example with the subwords of an epoch; as ever a text is cut at its end, and the class of a
  // word stands at its first id, so that words are drawn one by one.
  ClassExample drawn(int64_t epoch, int64_t s) const {
    constexpr bool kIsWords = kHead == Head::token_classes;
    const ClassExample& plain = train_[static_cast<size_t>(s)];
    RngStream random = subword_stream(epoch, s);
    const std::span<const int32_t> all = plain.encoding.ids;  // no special ones: see SubwordSampler
    std::vector<int32_t> ids, classes;
    for (size_t begin = 0, end = 0; begin < all.size(); begin = end) {
      end = begin + 1;
      while (end < all.size() && !(kIsWords && plain.classes[end] >= 0)) ++end;
      const size_t first = ids.size();
      sampler()->sample(all.subspan(begin, end - begin), random, ids);
      classes.resize(ids.size(), -1);
      classes[first] = plain.classes[begin];
    }
    const size_t longest = std::min(ids.size(), static_cast<size_t>(most_));
    ids.resize(longest);
    classes.resize(kIsWords ? longest : 1);
    return {.encoding = tokenizer().with_special(ids), .classes = classes};
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
};

template std::unique_ptr<TaskFields> new_fields<ClassTask<Head::sequence_classes>>();
template std::unique_ptr<TaskFields> new_fields<ClassTask<Head::token_classes>>();

}  // namespace heddle::train
