// The files that a command writes beside those that it reads.
#pragma once

#include "heddle/cli/command_line.h"

namespace heddle::cli {

/// To be called before a command does anything. What it reads is all that its flags and arguments
/// name and that is there; a folder of a model, a run or data stands for the files in it. A page in
/// such a folder is an earlier result.
/// Errors: usage, naming both, if a flag that writes_file() is given a file that is read, or that
/// another one writes.
void check_outputs(const Subcommand& program);

}  // namespace heddle::cli
