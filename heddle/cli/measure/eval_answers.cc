// heddle eval of models that choose: masked tokens of a text, classes of texts or of words.
#include <algorithm>
#include <cmath>

#include "heddle/base/progress.h"
#include "heddle/cli/flags.h"
#include "heddle/cli/lines.h"
#include "heddle/cli/measure/eval.h"
#include "heddle/cli/shared_command.h"
#include "heddle/data/documents.h"
#include "heddle/infer/answers.h"
#include "heddle/infer/loading/loaded_model.h"
#include "heddle/infer/loading/text_model.h"
#include "heddle/inspect/pages/text_pages.h"
#include "heddle/train/tasks/losses.h"
#include "heddle/train/tasks/text_task.h"

namespace heddle::cli {
namespace {

// Asks about all samples, of which none is longer than `longest`.
train::AnswerScore ask(const LoadedModel& model, const EvalFlags& flags, train::Questions questions,
                       int64_t longest) {
  questions.at_once = std::max<int64_t>(1, flags.batch_tokens / longest);
  nn::Run run;
  run.use(flags.chosen_precision);
  const bool has_classes =
      model.model->heads().sequence_classes || model.model->heads().token_classes;
  return train::score_answers(*model.model,
                              has_classes ? train::answer_classes : train::answer_masked, questions,
                              run, *flags.group);
}

// What answer number i was for.
inspect::AnsweredQuestion question(const train::Answers& all, size_t i, inspect::PartOfText text) {
  return {.text = std::move(text),
          .truth = all.truths[i],
          .answer = all.answers[i],
          .truth_p = std::exp(static_cast<double>(all.truth_log_p[i])),
          .answer_p = std::exp(static_cast<double>(all.answer_log_p[i]))};
}

std::vector<size_t> rows_with(std::span<const int32_t> targets) {
  std::vector<size_t> rows;
  for (size_t r = 0; r < targets.size(); ++r) {
    if (targets[r] >= 0) rows.push_back(r);
  }
  return rows;
}

int64_t context_of(const EvalFlags& flags, const LoadedModel& model) {
  const int64_t least = model.tokenizer->special_count() + 2;
  const int64_t context = flags.context > 0 ? flags.context : model.max_length;
  check(context >= least && context <= model.max_length, ErrorKind::usage,
        "--context is {}; it must be from {} to the {} tokens that the model takes", context, least,
        model.max_length);
  return context;
}

// Sequences of a text, and which of their tokens are hidden.
struct MaskedTokens {
  const Tokenizer& tokenizer;
  train::Chunks chunks;
  uint64_t seed;

  // A sequence before and after its tokens are hidden, and what they are (-1: not hidden).
  struct Sequence {
    std::vector<int32_t> whole, targets;
    Encoding hidden;
  };
  Sequence operator[](int64_t s) const {
    Sequence sequence;
    sequence.hidden = tokenizer.with_special(chunks[static_cast<size_t>(s)]);
    sequence.whole = sequence.hidden.ids;
    sequence.targets = train::mask_sequence(tokenizer, sequence.hidden.ids, s, {.seed = seed});
    return sequence;
  }
};

inspect::Page page_of(const MaskedTokens& masked, const train::Answers& all,
                      const inspect::Evaluation& evaluation) {
  std::vector<inspect::AnsweredQuestion> questions;
  for (int64_t s = 0; s < std::ssize(masked.chunks); ++s) {
    if (std::ssize(questions) >= inspect::kPageAnswers) break;
    const MaskedTokens::Sequence sequence = masked[s];
    for (const size_t r : rows_with(sequence.targets)) {
      questions.push_back(
          question(all, questions.size(),
                   inspect::part_of_text(masked.tokenizer, sequence.whole, r, r + 1)));
    }
  }
  return inspect::masked_page(evaluation, masked.tokenizer, questions, std::ssize(all.truths));
}

struct MaskedReport {
  train::AnswerScore score;
  int64_t tokens, sequences, context, special;
  uint64_t seed;
  int64_t dropped_characters;
};

Json as_json(const MaskedReport& r) {
  Json json = Json::object();
  json["accuracy"] = r.score.confusion.accuracy();
  json["ppl"] = finite_or_null(std::exp(r.score.loss()));
  json["nll"] = finite_or_null(r.score.sums.nll);
  json["masked"] = r.score.sums.predicted;
  json["tokens"] = r.tokens;
  json["dropped_characters"] = r.dropped_characters;
  json["sequences"] = r.sequences;
  json["context"] = r.context;
  json["seed"] = r.seed;
  return json;
}

std::string as_text(const MaskedReport& r) {
  return fmt::format(
      "masked-token accuracy {:.2f} % ({} of {} masked, seed {})\n"
      "perplexity {:.3f} per masked token\n"
      "{} of at most {} tokens, {} of them special",
      100 * r.score.confusion.accuracy(), format_count(r.score.sums.predicted),
      counted(r.tokens, "token"), r.seed, std::exp(r.score.loss()),
      counted(r.sequences, "sequence"), r.context, r.special);
}

struct ClassReport {
  train::AnswerScore score;
  int64_t texts;
  bool is_words;
  int64_t labels, dropped_characters;
};

Json as_json(const ClassReport& r) {
  Json json = Json::object();
  json["accuracy"] = r.score.confusion.accuracy();
  json["macro_f1"] = r.score.confusion.macro_f1();
  json["loss"] = finite_or_null(r.score.loss());
  json["texts"] = r.texts;
  json["answers"] = r.score.sums.predicted;
  json["labels"] = r.labels;
  json["dropped_characters"] = r.dropped_characters;
  return json;
}

std::string as_text(const ClassReport& r) {
  return fmt::format("accuracy {:.2f} %, macro F1 {:.4f}, loss {:.4f} ({}, {}{})",
                     100 * r.score.confusion.accuracy(), r.score.confusion.macro_f1(),
                     r.score.loss(), counted(r.texts, "text"),
                     r.is_words ? counted(r.score.sums.predicted, "word") + ", " : "",
                     counted(r.labels, "label"));
}

inspect::Page page_of(const LoadedModel& model, std::span<const train::ClassExample> examples,
                      const ClassReport& report, const EvalFlags& flags) {
  const train::Answers& all = report.score.all;
  std::vector<inspect::AnsweredQuestion> wrong;
  const auto is_listed = [&](size_t i) {
    return all.truths[i] != all.answers[i] && std::ssize(wrong) < inspect::kPageAnswers;
  };
  size_t i = 0;
  for (const train::ClassExample& e : examples) {
    if (!report.is_words) {
      if (is_listed(i)) wrong.push_back(question(all, i, {"", e.text, ""}));
      ++i;
      continue;
    }
    // A word reaches to the next that has a class.
    std::vector<size_t> rows = rows_with(e.classes);
    rows.push_back(e.encoding.ids.size());
    for (size_t r = 0; r + 1 < rows.size(); ++r, ++i) {
      if (!is_listed(i)) continue;
      wrong.push_back(question(
          all, i, inspect::part_of_text(*model.tokenizer, e.encoding.ids, rows[r], rows[r + 1])));
    }
  }
  return inspect::confusion_page({flags.model, flags.data, as_text(report)},
                                 class_names(*model.model), report.is_words ? "word" : "text",
                                 all.truths, all.answers, wrong);
}

// Prints a report, and where one is asked for writes its page.
template <class Report, class PageOf>
void give(const EvalFlags& flags, const Report& report, const PageOf& page_of) {
  check(report.score.sums.predicted > 0, ErrorKind::data,
        "{}: nothing there can be predicted: all of its tokens are special, or unknown to the "
        "vocabulary of {}",
        flags.data, flags.model);
  check(!std::isnan(report.score.loss()), ErrorKind::data,
        "{}: the model gives what is not finite; its weights are damaged, or it needs f32",
        flags.model);
  Json json = as_json(report);
  json["precision"] = precision_name(flags.chosen_precision);
  print_result(flags.json ? json.dump() : as_text(report));
  if (!flags.page.empty()) write_page("eval", "a page", flags.page, page_of(report));
}

}  // namespace

void eval_masked_tokens(const EvalFlags& flags) {
  check(
      flags.stride == 0 && !flags.no_memory, ErrorKind::usage,
      "--stride and --no-memory are for language models; a model of masked tokens sees each token "
      "once");
  const LoadedModel model = load_text_model(flags.model);
  check(model.tokenizer->mask_id() >= 0, ErrorKind::data, "{}: its tokenizer has no mask token",
        flags.model);
  check(model.tokenizer->vocab_size() <= model.tokens().vocab_size(), ErrorKind::data,
        "{}: the tokenizer has {} tokens, the model only {}", flags.model,
        model.tokenizer->vocab_size(), model.tokens().vocab_size());
  const int64_t context = context_of(flags, model);
  const uint64_t seed = flags.seed.value_or(train::HidingOptions().seed);
  const std::vector<std::string> documents = documents_of(flags);
  DroppedCharacters dropped(*model.tokenizer);
  for (const std::string& document : documents) dropped.count_in(document);
  warn_of_dropped(dropped, flags.data);
  const MaskedTokens masked = {*model.tokenizer,
                               train::chunks_of(train::encode_all(*model.tokenizer, documents),
                                                context - model.tokenizer->special_count()),
                               seed};
  check(!masked.chunks.empty(), ErrorKind::data, "{}: the text has no tokens", flags.data);
  const auto hidden = [&](train::SequenceBatch& batch, int64_t s) {
    const MaskedTokens::Sequence one = masked[s];
    batch.add(one.hidden.ids, s, one.targets, one.hidden.types);
  };
  const auto score = ask(model, flags,
                         {.classes = model.tokens().vocab_size(),
                          .samples = std::ssize(masked.chunks),
                          .add = hidden,
                          .keeps = !flags.page.empty()},
                         context);
  do_on_rank_0(*flags.group, [&] {
    const auto sequences = std::ssize(masked.chunks);
    const int64_t special = model.tokenizer->special_count();
    const MaskedReport report{.score = score,
                              .tokens = score.sums.tokens - sequences * special,
                              .sequences = sequences,
                              .context = context,
                              .special = special,
                              .seed = seed,
                              .dropped_characters = dropped.count()};
    give(flags, report, [&](const MaskedReport& r) {
      return page_of(masked, r.score.all, {flags.model, flags.data, as_text(r)});
    });
  });
}

void eval_classes(const EvalFlags& flags) {
  const LoadedModel model = load_text_model(flags.model);
  const bool is_words = static_cast<bool>(model.model->heads().token_classes);
  const std::vector<std::string> labels = class_names(*model.model);
  check_head(model, is_words || model.model->heads().sequence_classes, Head::sequence_classes,
             "classes");
  check(labels.size() >= 2, ErrorKind::data,
        "{}: the model has one label, so there is nothing to tell apart", flags.model);
  LabelledFiles columns;
  columns.files.text_key = flags.text_key;
  columns.label_key = flags.label_key;
  columns.is_words = is_words;
  std::vector<LabelledText> texts;
  const auto words_of_texts = [&] {
    std::string words;
    for (const LabelledText& text : texts) {
      words += fmt::format("{}\n", fmt::join(text.words, " "));
    }
    return words;
  };
  agree(
      *flags.group, "the data", [&] { texts = read_labelled_file(flags.data, columns); },
      words_of_texts);
  DroppedCharacters dropped(*model.tokenizer);
  for (const LabelledText& text : texts) {
    for (const std::string& word : text.words) dropped.count_in(word);
  }
  warn_of_dropped(dropped, flags.data);
  int64_t cut = 0;
  const auto examples = train::class_examples(
      *model.tokenizer, texts, {.labels = labels, .is_words = is_words, .longest = room_of(model)},
      cut);
  size_t longest = 1;
  for (const train::ClassExample& e : examples) longest = std::max(longest, e.encoding.ids.size());
  const auto score =
      ask(model, flags,
          {.classes = std::ssize(labels),
           .samples = std::ssize(examples),
           .add = [&](train::SequenceBatch& b, int64_t s) { train::add_example(b, examples, s); },
           .keeps = !flags.page.empty()},
          static_cast<int64_t>(longest));
  do_on_rank_0(*flags.group, [&] {
    const ClassReport report{score, std::ssize(examples), is_words, std::ssize(labels),
                             dropped.count()};
    warn_of_cut("eval", cut, std::ssize(examples), model.max_length);
    give(flags, report, [&](const ClassReport& r) { return page_of(model, examples, r, flags); });
  });
}

}  // namespace heddle::cli
