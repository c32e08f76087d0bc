// Flags that translate and eval share.
#pragma once

#include <optional>
#include <string>

#include "heddle/cli/command_line.h"
#include "heddle/cli/flags/shared_flags.h"
#include "heddle/infer/decoding/translate.h"

namespace heddle::cli {

struct TranslateFlags {
  std::string model;
  SearchConfig search;
  std::string source_language, target_language;
  std::optional<int64_t> min_length, max_length;
  int64_t n_best = 1, batch_tokens = TranslateOptions().batch_tokens;
  bool truncate = false;
  Subcommand command;  ///< that has the flags
  ComputeFlags compute;
};

void add_translate_flags(Subcommand& app, TranslateFlags& flags);

/// Sets the number of threads. Errors: usage, naming the flag, for values that make no sense.
Precision apply_translate_flags(const TranslateFlags& flags);

/// What the flags ask for, laid over what the model's folder says, see default_options(), and the
/// languages. Errors: those of set_languages().
TranslateOptions translate_options(const TranslateFlags& flags, LoadedModel& model,
                                   Precision precision);

/// Says on stderr how many lines were cut, if any.
void report_cut(const char* command, int64_t cut, const LoadedModel& model);

}  // namespace heddle::cli
