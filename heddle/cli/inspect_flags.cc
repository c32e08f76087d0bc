// Flags that the commands about one model and one text share, checked before any work.
#include "heddle/cli/inspect_flags.h"

#include <CLI/CLI.hpp>
#include <limits>

#include "heddle/base/parallel.h"
#include "heddle/infer/model_dir.h"
#include "heddle/infer/precision.h"
#include "heddle/infer/stack_model.h"

namespace heddle::cli {

void add_inspect_flags(CLI::App& app, InspectFlags& flags, bool is_model_required) {
  app.add_option("model", flags.model, "a model directory, or a training run (then RUN/best)")
      ->required(is_model_required);
  flags.has_source = app.add_option("--source,--text", flags.source, "the sentence to look at");
  flags.has_target = app.add_option("--target", flags.target,
                                    "its translation; without it the model's own, beam 5");
  app.add_option("--ids", flags.ids, "token ids in place of --source, for models without tokenizer")
      ->delimiter(',');
  app.add_flag("--truncate", flags.truncate, "cut text that is longer than the model takes");
  app.add_option("--precision", flags.precision, "f32, bf16, int8, or auto")->capture_default_str();
  app.add_option("--threads", flags.threads, "threads; 0: one a core")->capture_default_str();
}

inspect::Subject open_subject(const InspectFlags& flags) {
  inspect::SubjectOptions options{.source = flags.source,
                                  .target = {},
                                  .ids = {},
                                  .truncate = flags.truncate,
                                  .precision = resolve_precision(flags.precision)};
  check(flags.threads >= 0, ErrorKind::usage, "--threads is {}; it must be at least 1, or 0",
        flags.threads);
  check(
      flags.has_source->count() > 0 || !flags.ids.empty(), ErrorKind::usage,
      "--source is missing; give a sentence, as in --source \"a man rides a horse\" (or --text, or "
      "--ids for a model without tokenizer)");
  if (flags.threads > 0) set_num_threads(flags.threads);
  if (flags.has_target->count() > 0) options.target = flags.target;
  for (const int64_t id : flags.ids) {
    check(id >= 0 && id <= std::numeric_limits<int32_t>::max(), ErrorKind::usage,
          "--ids: {} is no token id; they begin at 0", id);
    options.ids.push_back(static_cast<int32_t>(id));
  }
  return inspect::Subject::open(flags.model, options);
}

}  // namespace heddle::cli
