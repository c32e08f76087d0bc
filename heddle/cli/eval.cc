// heddle eval: how good a model is, by measures that suit its kind.
#include <CLI/CLI.hpp>
#include <memory>

#include "heddle/cli/commands.h"
#include "heddle/cli/eval_flags.h"
#include "heddle/infer/model_dir.h"
#include "heddle/infer/stack_model.h"

namespace heddle::cli {
namespace {

void run(const EvalFlags& flags) {
  const bool has_pairs = !flags.source.empty() || !flags.reference.empty();
  check(flags.text.empty() || !has_pairs, ErrorKind::usage,
        "--text is for language models, --src and --ref for translators; give one of them");
  if (!flags.text.empty()) return eval_text(flags);
  const bool is_translator = is_translator_type(model_type_of(flags.model));
  check(is_translator, ErrorKind::usage,
        "{} is no translator; give the text to be predicted as --text FILE", flags.model);
  check(!flags.source.empty() && !flags.reference.empty(), ErrorKind::usage,
        "--src and --ref are needed: sentences and their translations, line by line");
  eval_translation(flags);
}

}  // namespace

void add_eval(CLI::App& app) {
  auto flags = std::make_shared<EvalFlags>();
  CLI::App* command = app.add_subcommand(
      "eval", "Measure a model: BLEU, chrF and perplexity of translations, perplexity of a text");
  add_translate_flags(*command, *flags);
  command->add_option("--src", flags->source, "sentences to translate, one a line");
  command->add_option("--ref", flags->reference, "their translations, one a line");
  command->add_flag("--lowercase", flags->lowercase, "lower-case both sides for BLEU and chrF");
  command->add_option("--tokenize", flags->tokenize, "words of BLEU: 13a or none")
      ->check(CLI::IsMember({"13a", "none"}))
      ->capture_default_str();
  command->add_option("--hyp-out", flags->hypothesis_out, "a file for the translations");
  command
      ->add_option(
          "--text", flags->text,
          "a text that a language model is to predict; a mixture of experts also shows how "
          "it routes the text")
      ->type_name("FILE");
  command->add_option("--context", flags->context,
                      "tokens of it that the model sees at once [as many as it takes]; of one with "
                      "memory: of a segment [as many as it remembers]");
  command->add_option("--stride", flags->stride,
                      "tokens from one window of the text to the next [half the context]");
  command->add_flag("--no-memory", flags->no_memory,
                    "each segment begins without the memory of those before (Transformer-XL)");
  command->add_flag("--json", flags->json, "one line of JSON");
  command->callback([flags] { run(*flags); });
}

}  // namespace heddle::cli
