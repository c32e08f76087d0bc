// Flags that translate and eval share, checked before any work.
#include "heddle/cli/flags/translate_flags.h"
#include "heddle/base/progress.h"

#include <algorithm>
#include <cmath>

#include "heddle/infer/decoding/limits.h"

namespace heddle::cli {

void add_translate_flags(Subcommand& app, TranslateFlags& flags) {
  TranslateOptions& o = flags.options;
  flags.command = app;
  app.add_option("model", flags.model, "a model directory, or a training run (then RUN/best)")
      ->required();
  app.add_option("--beam", o.beam, "hypotheses kept of each sentence; 1 is greedy")
      ->capture_default_str();
  app.add_option("--length-penalty", o.length_penalty,
                 "alpha of ((5 + length) / 6)^alpha, of a marian of length^alpha; larger favours "
                 "longer translations")
      ->capture_default_str();
  app.add_option("--min-length", o.rules.min_length,
                 "tokens of a translation at least, the end not counted")
      ->capture_default_str();
  app.add_option("--max-length", o.max_length,
                 "tokens of a translation at most, the end not counted; 0: twice the source's + 10")
      ->capture_default_str();
  app.add_option("--no-repeat-ngram", o.rules.no_repeat_ngram,
                 "no so many tokens in a row come twice in a translation; 0: they may")
      ->capture_default_str();
  app.add_option("--repetition-penalty", o.rules.repetition_penalty,
                 "divides the logits of tokens that came already (multiplies negative ones); 1: no "
                 "penalty")
      ->capture_default_str();
  app.add_option("--batch-tokens", o.batch_tokens, "source tokens of a batch, times the beam")
      ->capture_default_str();
  add_compute_flags(app, flags.compute);
  app.add_flag("--truncate", o.truncate, "cut lines that are longer than the model takes");
}

TranslateOptions translate_options(const TranslateFlags& flags) {
  TranslateOptions o = flags.options;
  check(o.beam >= 1, ErrorKind::usage, "--beam is {}; it must be at least 1 (1 is greedy)", o.beam);
  check(o.beam <= kMostBeams, ErrorKind::usage, "--beam is {}; at most {} are possible", o.beam,
        kMostBeams);
  check(std::isfinite(o.length_penalty) && std::abs(o.length_penalty) <= 100, ErrorKind::usage,
        "--length-penalty is {}; a number between -100 and 100 is needed", o.length_penalty);
  check(o.batch_tokens >= 1, ErrorKind::usage, "--batch-tokens is {}; it must be at least 1",
        o.batch_tokens);
  check(o.max_length >= 0 && o.max_length <= 1'000'000, ErrorKind::usage,
        "--max-length is {}; it must be from 1 to 1000000, or 0 for one that follows the source's",
        o.max_length);
  check_token_rules(o.rules);
  o.precision = apply_compute_flags(flags.compute);
  o.scores = false;
  return o;
}

void take_model_defaults(const TranslateFlags& flags, const TranslationModel& model,
                         TranslateOptions& options) {
  if (!model.generation) return;
  const TranslateOptions wanted = default_options(model);
  const auto take = [&](const char* flag, auto& value, const auto& from) {
    if (flags.command->get_option(flag)->count() == 0) value = from;
  };
  take("--length-penalty", options.length_penalty, wanted.length_penalty);
  take("--min-length", options.rules.min_length, wanted.rules.min_length);
  take("--max-length", options.max_length, wanted.max_length);
  take("--no-repeat-ngram", options.rules.no_repeat_ngram, wanted.rules.no_repeat_ngram);
  take("--repetition-penalty", options.rules.repetition_penalty, wanted.rules.repetition_penalty);
  if (!options.sampling) take("--beam", options.beam, wanted.beam);
  if (!options.sampling) options.beam = std::max(options.beam, options.n_best);
  options.rules.banned_ngrams = wanted.rules.banned_ngrams;
  options.suppressed = wanted.suppressed;
  options.early_stopping = wanted.early_stopping;
  options.needs_end = wanted.needs_end;
  options.is_hub = wanted.is_hub;
}

void report_cut(const char* command, int64_t cut, const TranslationModel& model) {
  if (cut == 0) return;
  fmt::print(stderr, "{}: {} cut to the {} tokens that the model takes\n", command,
             counted(cut, "line was", "lines were"),
             format_count(model.model.facts().longest_source));
}

}  // namespace heddle::cli
