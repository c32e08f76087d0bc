// Runs the program and kills it at its n-th change of the disk, lets that call fail, or sends a
// signal.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/cli_runner.h"

namespace heddle::testing {

/// What happens at a system call that opens, writes, syncs, renames, makes or removes something.
struct Fault {
  enum class Kind {
    none,  ///< calls are only counted
    kill,  ///< SIGKILL in place of the call; a write does half, and is killed before the other half
    fail,  ///< the call does nothing and gives `error`
    send   ///< the call is made, and the program gets `signal`
  };
  Kind kind = Kind::none;
  int error = 0;   ///< ENOSPC, EIO
  int signal = 0;  ///< SIGINT, SIGTERM
  int64_t at = 0;  ///< the call, counted from 1
  /// Only calls on files below it count.
  std::filesystem::path folder = {};
  bool counts_reading = false;  ///< opening a file or folder to read it counts too
  std::string only = {};  ///< if not empty: this call alone counts, as FaultResult::call says it
};

struct FaultResult {
  CliResult run;
  int64_t calls = 0;  ///< that were counted
  bool was_hit = false;
  std::string call;  ///< the one that was hit, as in "rename run/train.json.tmp-0123456789abcdef"
};

/// Runs heddle under the fault, with `fault.folder` as its working directory. The calls are those
/// of the kernel, whichever library makes them and from whichever thread. Throws std::runtime_error
/// where the system forbids to trace.
FaultResult run_with_fault(std::vector<std::string> arguments, const Fault& fault);

}  // namespace heddle::testing
