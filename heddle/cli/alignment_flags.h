// Flags that align and translate share.
#pragma once

#include "heddle/infer/alignment.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace heddle::cli {

/// Adds --align-layers, --align-heads and --align-shift; they may be given only with `needed`, if
/// not null.
void add_alignment_flags(CLI::App& command, AlignmentOptions& options, CLI::Option* needed);

}  // namespace heddle::cli
