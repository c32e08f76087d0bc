// Flags that the commands about one model and one text share, checked before any work.
#include "heddle/cli/flags/inspect_flags.h"

#include <limits>

namespace heddle::cli {

void add_inspect_flags(Subcommand& app, InspectFlags& flags, bool is_model_required) {
  app.add_option("model", flags.model, "a model directory, or a training run (then RUN/best)")
      .required(is_model_required);
  flags.has_source = app.add_option("--text", flags.source, "the text to look at");
  flags.has_target = app.add_option("--target", flags.target,
                                    "its translation; without it a translator's own, beam 5");
  app.add_option("--ids", flags.ids, "token ids in place of --text, for models without tokenizer")
      .delimiter(',');
  app.add_flag("--truncate", flags.truncate, "cut text that is longer than the model takes");
  add_compute_flags(app, flags.compute);
}

inspect::Subject open_subject(const InspectFlags& flags) {
  inspect::SubjectOptions options{.source = flags.source,
                                  .target = {},
                                  .ids = {},
                                  .truncate = flags.truncate,
                                  .precision = apply_compute_flags(flags.compute)};
  check(flags.has_source.count() > 0 || !flags.ids.empty(), ErrorKind::usage,
        "--text is missing; give a sentence, as in --text \"a man rides a horse\" (or --ids for a "
        "model without tokenizer)");
  if (flags.has_target.count() > 0) options.target = flags.target;
  for (const int64_t id : flags.ids) {
    check(id >= 0 && id <= std::numeric_limits<int32_t>::max(), ErrorKind::usage,
          "--ids: {} is no token id; they begin at 0", id);
    options.ids.push_back(static_cast<int32_t>(id));
  }
  return inspect::Subject::open(flags.model, options);
}

}  // namespace heddle::cli
