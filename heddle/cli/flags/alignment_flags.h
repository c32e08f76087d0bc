// Flags that align and translate share.
#pragma once

#include "heddle/cli/command_line.h"
#include "heddle/infer/words/alignment.h"

namespace heddle::cli {

/// Adds --align-layers, --align-heads and --align-shift; they may be given only with `needed`, if
/// not null.
void add_alignment_flags(Subcommand& command, AlignmentOptions& options, Option needed);

}  // namespace heddle::cli
