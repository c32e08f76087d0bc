// Flags that the commands about one model and one text share.
#pragma once

#include <string>
#include <vector>

#include "heddle/cli/command_line.h"
#include "heddle/cli/flags/shared_flags.h"
#include "heddle/inspect/subject.h"

namespace heddle::cli {

struct InspectFlags {
  std::string model, source, target;
  ComputeFlags compute{.precision = "f32"};
  std::vector<int64_t> ids;
  bool truncate = false;
  Option has_source;
  Option has_target;
};

/// Adds model, --text, --target, --ids, --truncate, --precision and --threads.
void add_inspect_flags(Subcommand& app, InspectFlags& flags, bool is_model_required = true);

/// The subject that the flags name; sets the number of threads.
/// Errors: usage, naming the flag, where nothing is given to look at; those of Subject::open().
inspect::Subject open_subject(const InspectFlags& flags);

}  // namespace heddle::cli
