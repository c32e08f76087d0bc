// Flags that translate and eval share.
#pragma once

#include <string>

#include "heddle/cli/command_line.h"
#include "heddle/cli/flags/compute_flags.h"
#include "heddle/infer/decoding/translate.h"

namespace heddle::cli {

struct TranslateFlags {
  std::string model;
  TranslateOptions options;
  Subcommand command;  ///< that has the flags
  ComputeFlags compute;
};

void add_translate_flags(Subcommand& app, TranslateFlags& flags);

/// The options that the flags ask for; sets the number of threads.
/// Errors: usage, naming the flag, for values that make no sense.
TranslateOptions translate_options(const TranslateFlags& flags);

/// What the flags leave open, as the model's folder says, see default_options().
void take_model_defaults(const TranslateFlags& flags, const TranslationModel& model,
                         TranslateOptions& options);

/// Says on stderr how many lines were cut, if any.
void report_cut(const char* command, int64_t cut, const TranslationModel& model);

}  // namespace heddle::cli
