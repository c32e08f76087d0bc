// Flags that translate and eval share, checked before any work.
#include "heddle/cli/flags/translate_flags.h"
#include "heddle/base/progress.h"

namespace heddle::cli {

void add_translate_flags(Subcommand& app, TranslateFlags& flags) {
  flags.command = app;
  app.add_option("model", flags.model, "a model directory, or a training run (then RUN/best)")
      .required();
  app.add_option("--source-language", flags.source_language,
                 "language of the texts, of a model that is told, as its tokenizer has it: en_XX, "
                 "eng_Latn, en");
  app.add_option("--target-language", flags.target_language,
                 "language of the translations; a name that is none lists those that there are");
  add_search_flags(app, flags.search,
                   {"num_beams", "length_penalty", "no_repeat_ngram_size", "repetition_penalty"});
  app.add_option("--min-length", flags.min_length,
                 "tokens of a translation at least, the end not counted [as the model says, or 0]");
  app.add_option("--max-length", flags.max_length,
                 "tokens of a translation at most, the end not counted; 0: twice the source's + 10 "
                 "[as the model says, or 0]");
  app.add_setting("--batch-tokens", flags.batch_tokens, "source tokens of a batch, times the beam");
  add_compute_flags(app, flags.compute);
  app.add_flag("--truncate", flags.truncate, "cut lines that are longer than the model takes");
}

Precision apply_translate_flags(const TranslateFlags& flags) {
  flags.search.check_ranges();
  const int64_t least = flags.min_length.value_or(0), most = flags.max_length.value_or(0);
  check(flags.batch_tokens >= 1, ErrorKind::usage, "--batch-tokens is {}; it must be at least 1",
        flags.batch_tokens);
  check(least >= 0, ErrorKind::usage, "--min-length is {}; it must be at least 0", least);
  check(most >= 0 && most <= 1'000'000, ErrorKind::usage,
        "--max-length is {}; it must be from 1 to 1000000, or 0 for one that follows the source's",
        most);
  return apply_compute_flags(flags.compute);
}

TranslateOptions translate_options(const TranslateFlags& flags, LoadedModel& model,
                                   Precision precision) {
  TranslateOptions o = default_options(model, flags.search);
  if (flags.min_length) o.search.min_new_tokens = flags.min_length;
  o.max_length = flags.max_length.value_or(o.max_length);
  o.search.n_best = flags.n_best;
  o.batch_tokens = flags.batch_tokens;
  o.truncate = flags.truncate;
  o.precision = precision;
  o.scores = false;
  set_languages(model, flags.source_language, flags.target_language, o);
  return o;
}

void report_cut(const char* command, int64_t cut, const LoadedModel& model) {
  if (cut == 0) return;
  fmt::print(stderr, "{}: {} cut to the {} tokens that the model takes\n", command,
             counted(cut, "line was", "lines were"),
             format_count(model.translator().facts().longest_source));
}

}  // namespace heddle::cli
