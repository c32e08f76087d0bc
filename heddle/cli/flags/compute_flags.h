// How a command computes: flags that all commands that run a model share.
#pragma once

#include <string>

#include "heddle/cli/command_line.h"

#include "heddle/tensor/dtype.h"

namespace heddle::cli {

struct ComputeFlags {
  std::string precision = "auto";
  int threads = 0;  ///< 0: as many as there are cores
};

/// Adds --precision and --threads.
void add_compute_flags(Subcommand& command, ComputeFlags& flags);

/// Sets the threads. Errors: usage, naming the flag, for a wrong value.
Precision apply_compute_flags(const ComputeFlags& flags);

}  // namespace heddle::cli
