// heddle eval of models that choose: hidden words of a text, classes of texts or of words.
#include <algorithm>
#include <cmath>

#include "heddle/cli/eval_flags.h"
#include "heddle/cli/text_flags.h"
#include "heddle/data/documents.h"
#include "heddle/infer/precision.h"
#include "heddle/infer/text_model.h"
#include "heddle/train/class_examples.h"
#include "heddle/train/class_loss.h"
#include "heddle/train/masked_sequences.h"
#include "heddle/train/text_tokenizer.h"

namespace heddle::cli {
namespace {

// Asks about all samples, of which none is longer than `longest`.
train::AnswerScore ask(const TextModel& model, const EvalFlags& flags, train::Questions questions,
                       int64_t longest) {
  const TranslateOptions common = translate_options(flags);
  questions.at_once = std::max<int64_t>(1, common.batch_tokens / longest);
  nn::Run run;
  run.use(common.precision);
  const bool has_classes =
      model.model().heads().sequence_classes || model.model().heads().word_classes;
  return train::score_answers(
      model.model(), has_classes ? train::answer_classes : train::answer_masked, questions, run);
}

int64_t context_of(const EvalFlags& flags, const TextModel& model) {
  const int64_t least = model.tokenizer.special_count() + 2;
  const int64_t context = flags.context > 0 ? flags.context : model.max_length;
  check(context >= least && context <= model.max_length, ErrorKind::usage,
        "--context is {}; it must be from {} to the {} tokens that the model takes", context, least,
        model.max_length);
  return context;
}

}  // namespace

void eval_masked_words(const EvalFlags& flags) {
  check(flags.stride == 0 && !flags.no_memory, ErrorKind::usage,
        "--stride and --no-memory are for language models; a model of masked words sees each token "
        "once");
  const TextModel model = load_text_model(flags.model);
  check(model.tokenizer.mask_id() >= 0, ErrorKind::data, "{}: its tokenizer has no mask token",
        flags.model);
  check(model.tokenizer.vocab_size() <= model.model().vocab_size(), ErrorKind::data,
        "{}: the tokenizer has {} words, the model only {}", flags.model,
        model.tokenizer.vocab_size(), model.model().vocab_size());
  const int64_t context = context_of(flags, model);
  const uint64_t seed = flags.seed.value_or(train::HidingOptions().seed);
  const train::Chunks chunks = train::chunks_of(
      train::encode_all(model.tokenizer, read_documents(flags.text, flags.text_key)),
      context - model.tokenizer.special_count());
  check(!chunks.empty(), ErrorKind::data, "{}: the text has no tokens", flags.text);
  const auto hidden = [&](train::SequenceBatch& batch, int64_t s) {
    Encoding e = model.tokenizer.with_special(chunks[static_cast<size_t>(s)]);
    const std::vector<int32_t> targets =
        train::hide_words(model.tokenizer, e.ids, s, {.seed = seed});
    batch.add(e.ids, s, targets, e.types);
  };
  const auto score =
      ask(model, flags,
          {.classes = model.model().vocab_size(), .samples = std::ssize(chunks), .add = hidden},
          context);
  const int64_t tokens = score.sums.tokens - std::ssize(chunks) * model.tokenizer.special_count();
  if (!flags.json) {
    fmt::print(
        "masked token right {:.2f} % ({} of {} tokens were masked, seed {})\n"
        "perplexity {:.3f} a masked token\n"
        "{} sequences of at most {} tokens, {} of them special\n",
        100 * score.confusion.accuracy(), score.sums.words, tokens, seed, std::exp(score.loss()),
        chunks.size(), context, model.tokenizer.special_count());
    return;
  }
  Json json = Json::object();
  json["accuracy"] = score.confusion.accuracy();
  json["ppl"] = finite_or_null(std::exp(score.loss()));
  json["nll"] = finite_or_null(score.sums.nll);
  json["masked"] = score.sums.words;
  json["tokens"] = tokens;
  json["sequences"] = chunks.size();
  json["context"] = context;
  json["seed"] = seed;
  json["precision"] = precision_name(resolve_precision(flags.compute.precision));
  fmt::print("{}\n", json.dump());
}

namespace {

struct ClassReport {
  train::AnswerScore score;
  int64_t texts;
  bool is_words;
  int64_t labels;
};

std::string as_json(const ClassReport& r, const EvalFlags& flags) {
  Json json = Json::object();
  json["accuracy"] = r.score.confusion.accuracy();
  json["macro_f1"] = r.score.confusion.macro_f1();
  json["loss"] = finite_or_null(r.score.loss());
  json["texts"] = r.texts;
  json["answers"] = r.score.sums.words;
  json["labels"] = r.labels;
  json["precision"] = precision_name(resolve_precision(flags.compute.precision));
  return json.dump();
}

std::string as_text(const ClassReport& r) {
  return fmt::format("accuracy {:.2f} %, macro F1 {:.4f}, loss {:.4f} ({} texts, {}{} labels)",
                     100 * r.score.confusion.accuracy(), r.score.confusion.macro_f1(),
                     r.score.loss(), r.texts,
                     r.is_words ? fmt::format("{} words, ", r.score.sums.words) : "", r.labels);
}

}  // namespace

void eval_classes(const EvalFlags& flags) {
  const TextModel model = load_text_model(flags.model);
  const bool is_words = static_cast<bool>(model.model().heads().word_classes);
  const std::vector<std::string>& labels = model.model().labels();
  check(is_words || model.model().heads().sequence_classes, ErrorKind::data,
        "{}: the model has no head for classes; one is needed, like BertForSequenceClassification",
        flags.model);
  check(labels.size() >= 2, ErrorKind::data,
        "{}: the model has one label, so there is nothing to tell apart", flags.model);
  const int64_t room = model.max_length - model.tokenizer.special_count();
  check(room >= 1, ErrorKind::data,
        "{}: texts of at most {} ids leave no room beside {} special ones", flags.model,
        model.max_length, model.tokenizer.special_count());
  LabelledFiles columns;
  columns.files.text_key = flags.text_key;
  columns.label_key = flags.label_key;
  columns.is_words = is_words;
  const std::vector<LabelledText> texts = read_labelled_file(flags.data, columns);
  int64_t cut = 0;
  const auto examples = train::class_examples(
      model.tokenizer, texts, {.labels = labels, .is_words = is_words, .longest = room}, cut);
  size_t longest = 1;
  for (const train::ClassExample& e : examples) longest = std::max(longest, e.encoding.ids.size());
  const auto score =
      ask(model, flags,
          {.classes = std::ssize(labels),
           .samples = std::ssize(examples),
           .add = [&](train::SequenceBatch& b, int64_t s) { train::add_example(b, examples, s); }},
          static_cast<int64_t>(longest));
  const ClassReport report{score, std::ssize(examples), is_words, std::ssize(labels)};
  fmt::print("{}\n", flags.json ? as_json(report, flags) : as_text(report));
  warn_of_cut("eval", cut, std::ssize(examples), model.max_length);
}

}  // namespace heddle::cli
