// heddle eval: how good a model is, by measures that suit its kind.
#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>
#include <sstream>

#include "heddle/cli/commands.h"
#include "heddle/cli/eval_flags.h"
#include "heddle/infer/model_dir.h"
#include "heddle/infer/stack_model.h"
#include "heddle/train/stack_task.h"

namespace heddle::cli {
namespace {

// What is given to judge a model by. Flags that go with one alone are in a group of its name.
constexpr const char* kPairs = "With --src and --ref";
constexpr const char* kText = "With --text";
constexpr const char* kData = "With --data";
constexpr const char* kEither = "With --text or --data";

bool is_given(const CLI::App& command, const char* flag) {
  return command.get_option(flag)->count() > 0;
}

// The group of what is given.
const char* given_group(const EvalFlags& flags) {
  const bool has_pairs = is_given(*flags.command, "--src") || is_given(*flags.command, "--ref");
  const bool has_text = is_given(*flags.command, "--text");
  const bool has_data = is_given(*flags.command, "--data");
  check(int{has_pairs} + int{has_text} + int{has_data} <= 1, ErrorKind::usage,
        "--src and --ref are for translators, --text is for language models and models of masked "
        "words, --data for models with classes; give one of them");
  if (has_text || has_data) return has_text ? kText : kData;
  if (has_pairs || is_translator_type(model_type_of(flags.model))) return kPairs;
  fail(ErrorKind::usage,
       "{} is no translator; give the text to be predicted as --text FILE, or texts with their "
       "classes as --data FILE",
       flags.model);
}

void check_flags(const CLI::App& command, const std::string& group) {
  for (const CLI::Option* option : command.get_options()) {
    const std::string& its = option->get_group();
    if (option->count() == 0 || !its.starts_with("With ")) continue;
    const bool fits = its == group || (its == kEither && group != kPairs);
    check(fits, ErrorKind::usage, "{} goes {}, not {}; leave it out", option->get_name(),
          "w" + its.substr(1), "w" + group.substr(1));
  }
}

void run(const EvalFlags& flags) {
  const std::string group = given_group(flags);
  check_flags(*flags.command, group);
  if (group == kData) return eval_classes(flags);
  const bool is_translator = is_translator_type(model_type_of(flags.model));
  if (group == kText) {
    const Head head = is_translator ? Head::none : train::config_of_model(flags.model).hub().head;
    const bool is_masked = head == Head::masked_token || head == Head::pretraining;
    return is_masked ? eval_masked_tokens(flags) : eval_text(flags);
  }
  check(is_translator, ErrorKind::usage,
        "{} is no translator, which --src and --ref are for; give the text to be predicted as "
        "--text FILE",
        flags.model);
  check(!flags.source.empty() && !flags.reference.empty(), ErrorKind::usage,
        "--src and --ref are needed: sentences and their translations, line by line");
  eval_translation(flags);
}

void add_pair_flags(CLI::App& command, EvalFlags& flags) {
  for (const char* flag : {"--beam", "--length-penalty", "--min-length", "--max-length",
                           "--no-repeat-ngram", "--repetition-penalty", "--truncate"}) {
    command.get_option(flag)->group(kPairs);
  }
  command.add_option("--src", flags.source, "sentences to translate, one a line")->group(kPairs);
  command.add_option("--ref", flags.reference, "their translations, one a line")->group(kPairs);
  command.add_flag("--lowercase", flags.lowercase, "lower-case both sides for BLEU and chrF")
      ->group(kPairs);
  command.add_option("--tokenize", flags.tokenize, "words of BLEU: 13a or none")
      ->check(CLI::IsMember({"13a", "none"}))
      ->capture_default_str()
      ->group(kPairs);
  command.add_option("--hyp-out", flags.hypothesis_out, "a file for the translations")
      ->group(kPairs);
}

void add_text_flags(CLI::App& command, EvalFlags& flags) {
  command
      .add_option("--text", flags.text,
                  "a text whose tokens a language model is to predict, or a model of masked tokens "
                  "15 % of them, hidden as in training; of a mixture of experts also its routing")
      ->type_name("FILE")
      ->group(kText);
  command
      .add_option("--context", flags.context,
                  "tokens of it that the model sees at once [as many as it takes]; of one with "
                  "memory: of a segment [as many as it remembers]")
      ->group(kText);
  command
      .add_option("--stride", flags.stride,
                  "tokens from one window of the text to the next [half the context]")
      ->group(kText);
  command
      .add_flag("--no-memory", flags.no_memory,
                "each segment begins without the memory of those before (Transformer-XL)")
      ->group(kText);
  command
      .add_option(
          "--seed", flags.seed,
          "of the choice of masked tokens: the same seed masks the same tokens of a text [1]")
      ->group(kText);
}

void add_data_flags(CLI::App& command, EvalFlags& flags) {
  command
      .add_option("--data", flags.data,
                  "texts with their classes (.csv, .tsv, .jsonl), or words with theirs (CoNLL, "
                  ".jsonl), as for training")
      ->type_name("FILE")
      ->group(kData);
  command.add_option("--text-key", flags.text_key, "column or key of the text")
      ->capture_default_str()
      ->group(kEither);
  command.add_option("--label-key", flags.label_key, "column or key of the label")
      ->capture_default_str()
      ->group(kData);
}

}  // namespace

Json finite_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(); }

int64_t count_words(const std::string& text) {
  std::istringstream stream(text);
  int64_t words = 0;
  for (std::string word; stream >> word;) ++words;
  return words;
}

bool wants_page(const EvalFlags& flags) {
  if (flags.output.empty()) return false;
  inspect::check_output(flags.output, "the page");
  return true;
}

void write_eval_page(const EvalFlags& flags, const inspect::Page& page) {
  inspect::write_page(flags.output, page);
  fmt::print(stderr, "eval: a page in {}; open it in a browser\n", flags.output);
}

void add_eval(CLI::App& app) {
  auto flags = std::make_shared<EvalFlags>();
  CLI::App* command = app.add_subcommand(
      "eval",
      "Measure a model: BLEU, chrF and perplexity of translations; perplexity and accuracy on a "
      "text; accuracy and macro F1 of classes");
  add_translate_flags(*command, *flags);
  command->add_flag("--json", flags->json, "one line of JSON");
  command
      ->add_option("-o,--output", flags->output,
                   "also a page of what was right and wrong: translations, tokens with their "
                   "losses, masked tokens, or classes; one file")
      ->type_name("FILE.html");
  add_pair_flags(*command, *flags);
  add_text_flags(*command, *flags);
  add_data_flags(*command, *flags);
  command->callback([flags] { run(*flags); });
}

}  // namespace heddle::cli
