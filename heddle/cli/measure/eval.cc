// heddle eval: how good a model is, by measures that suit its kind.
#include <cmath>

#include "heddle/base/log.h"
#include "heddle/cli/commands.h"
#include "heddle/cli/flags.h"
#include "heddle/cli/measure/eval.h"
#include "heddle/cli/shared_command.h"
#include "heddle/infer/loading/loaded_model.h"
#include "heddle/train/run/run_folder.h"
#include "heddle/train/tasks/model_task.h"

namespace heddle::cli {
namespace {

// The kinds of models. Flags of one kind alone are in a group of its name.
constexpr const char* kPairs = "Of translators";
constexpr const char* kText = "Of language models and those of masked tokens";
constexpr const char* kClasses = "Of models with classes";
constexpr const char* kImages = "Of models that read images";
constexpr const char* kCaptions = "Of captioners";
constexpr const char* kTargets = "Of translators and captioners";
constexpr const char* kData = "Of all but translators";

bool is_given(const Subcommand& command, const char* flag) {
  return command.get_option(flag).count() > 0;
}

Head head_of(const std::string& model) { return train::config_of_model(model).hub().head; }

// The group of what the model is, which must be what the flags are for.
const char* group_of(const EvalFlags& flags) {
  const bool has_pairs = is_given(flags.command, "--src") || is_given(flags.command, "--ref");
  const bool has_data = is_given(flags.command, "--data");
  check(!has_pairs || !has_data, ErrorKind::usage,
        "--src and --ref are for translators, --data for all other models; give one of them");
  if (is_translator(flags.model)) {
    check(!has_data, ErrorKind::usage,
          "{} is a translator; in place of --data give sentences and their translations as --src "
          "and --ref",
          flags.model);
    return kPairs;
  }
  const Head head = head_of(flags.model);
  check(
      has_data || !reads_images(head), ErrorKind::usage,
      "{} reads images; give labelled images as --data DIR (to a captioner, images with captions)",
      flags.model);
  check(has_data, ErrorKind::usage,
        "{} is no translator; give the text to be predicted, or texts with their classes, as "
        "--data FILE",
        flags.model);
  if (head == Head::caption) return kCaptions;
  if (reads_images(head)) return kImages;
  return has_labels(head) ? kClasses : kText;
}

void check_flags(const EvalFlags& flags, const std::string& group) {
  for (const Option& option : flags.command.get_options()) {
    const std::string its = option.group_name();
    if (option.count() == 0 || !its.starts_with("Of ") || its == group) continue;
    const bool has_target = group == kPairs || group == kCaptions;
    check((its == kData && group != kPairs) || (its == kTargets && has_target), ErrorKind::usage,
          "{} is a flag {}, and {} is none of these; leave it out", option.name(),
          "o" + its.substr(1), flags.model);
  }
}

// Of a run, what it was trained with is the default.
void take_keys_of_run(EvalFlags& flags, bool has_label_key) {
  if (!train::is_run(flags.model)) return;
  const Json settings = to_json(train::stored_config(flags.model));
  const auto take = [&](const char* flag, std::string& key) {
    const std::string& of_run = settings.get_string(field_key(flag));
    if (is_given(flags.command, flag) || key == of_run) return;
    key = of_run;
    log_info("eval: {} {}, as in the training of {}", flag, key, flags.model);
  };
  take("--text-key", flags.text_key);
  if (has_label_key) take("--label-key", flags.label_key);
}

// Whether it is a language model, and none of masked tokens.
bool predicts_text(const EvalFlags& flags, const std::string& group) {
  if (group != kText) return false;
  const Head head = head_of(flags.model);
  return head != Head::masked_token && head != Head::pretraining;
}

void measure_images(const EvalFlags& flags, Head head) {
  if (head == Head::caption) return eval_captions(flags);
  if (head != Head::objects) return eval_images(flags);
  check(flags.views == 1, ErrorKind::usage,
        "--views is of models that classify images, and {} finds objects; leave it out",
        flags.model);
  eval_objects(flags);
}

void measure(EvalFlags& flags) {
  flags.chosen_precision = apply_translate_flags(flags);
  check_same_files(*flags.group, flags.ranks, flags.model, flags.chosen_precision);
  wants_page(flags.page);
  if (!flags.output.empty()) inspect::check_output(flags.output, "the translations");
  const std::string group = group_of(flags);
  check_flags(flags, group);
  if (group == kCaptions || group == kImages) {
    const Head head = head_of(flags.model);
    // Pictures of a page are not told to others.
    const bool is_shared = head != Head::caption && (head != Head::objects || flags.page.empty());
    if (is_shared) return measure_images(flags, head);
    return do_on_rank_0(*flags.group, [&] {
      dist::LocalGroup alone;
      EvalFlags own = flags;
      own.group = &alone;
      measure_images(own, head);
    });
  }
  if (group != kPairs) take_keys_of_run(flags, group == kClasses);
  if (group == kClasses) return eval_classes(flags);
  if (predicts_text(flags, group)) return eval_text(flags);
  if (group == kText) return eval_masked_tokens(flags);
  check(!flags.source.empty() && !flags.reference.empty(), ErrorKind::usage,
        "--src and --ref are needed: sentences and their translations, line by line");
  check(!flags.output.ends_with(".html"), ErrorKind::usage,
        "--output {} is a file for the translations; a page is written by --page", flags.output);
  eval_translation(flags);
}

void run(EvalFlags& flags) {
  run_shared(flags.command, flags.ranks, [&](dist::Group& group) {
    flags.group = &group;
    measure(flags);
  });
}

void add_pair_flags(Subcommand& command, EvalFlags& flags) {
  for (const char* flag : {"--beam", "--length-penalty", "--min-length", "--max-length",
                           "--no-repeat-ngram", "--repetition-penalty"}) {
    command.get_option(flag).group(kTargets);
  }
  for (const char* flag : {"--truncate", "--source-language", "--target-language", "--shortlist"}) {
    command.get_option(flag).group(kPairs);
  }
  command.begin_group(kPairs);
  command.add_option("--src", flags.source, "sentences to translate, one a line");
  command.add_option("--ref", flags.reference, "their translations, one a line");
  command.begin_group(kTargets);
  command.add_flag("--lowercase", flags.lowercase, "lower-case both sides for BLEU and chrF");
  command.add_setting("--tokenize", flags.tokenize, "words of BLEU: 13a or none")
      .one_of({"13a", "none"});
  command.begin_group(kPairs);
  command.add_option("-o,--output", flags.output, "also a file with the translations")
      .type_name("FILE")
      .writes_file();
}

void add_text_flags(Subcommand& command, EvalFlags& flags) {
  command.begin_group(kText);
  command.add_option("--context", flags.context,
                     "tokens of it that the model sees at once [as many as it takes]; of one with "
                     "memory: of a segment [as many as it remembers]");
  command.add_option("--stride", flags.stride,
                     "tokens from one window of the text to the next [half the context]");
  command.add_flag("--no-memory", flags.no_memory,
                   "each segment begins without the memory of those before");
  command.add_option(
      "--seed", flags.seed,
      "of the choice of masked tokens: the same seed masks the same tokens of a text [1]");
}

void add_data_flags(Subcommand& command, EvalFlags& flags) {
  command.begin_group(kData);
  command
      .add_option("--data", flags.data,
                  "as for training: the text whose tokens a language model is to predict (and a "
                  "model of masked tokens 15 % of them); texts with their classes (.csv, .tsv, "
                  ".jsonl), words with theirs (CoNLL, .jsonl), or images with theirs, with boxes, "
                  "or with captions")
      .type_name("FILE");
  command.add_option("--text-key", flags.text_key,
                     "column or key of the text [that of the run, or text]; numbers count columns "
                     "without names");
  command.begin_group(kClasses);
  command.add_option("--label-key", flags.label_key,
                     "column or key of the label [that of the run, or label]");
  command.begin_group(kImages);
  command.add_setting("--views", flags.views,
                      "2: each image is judged by the mean of its logits and its mirror image's");
}

}  // namespace

Json finite_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(); }

void add_eval(Subcommand& app) {
  auto [command, flags] = app.add_command<EvalFlags>(
      "eval",
      "Measure a model: BLEU, chrF and perplexity of translations; perplexity and accuracy on a "
      "text; accuracy and macro F1 of classes; mAP of boxes; BLEU and truth of captions",
      run);
  add_translate_flags(command, flags);
  command.add_flag("--json", flags.json, "one line of JSON");
  add_page_flag(command, flags.page,
                "also write a page of what was right and wrong: translations, tokens with their "
                "losses, masked tokens, or classes");
  add_pair_flags(command, flags);
  add_text_flags(command, flags);
  add_data_flags(command, flags);
  add_group_flags(command, flags.ranks);
}

}  // namespace heddle::cli
