// How a command computes: precision and threads.
#include "heddle/cli/flags/compute_flags.h"

#include "heddle/base/error.h"
#include "heddle/base/parallel.h"
#include "heddle/infer/loading/precision.h"

namespace heddle::cli {

void add_compute_flags(Subcommand& command, ComputeFlags& flags) {
  command
      .add_option("--precision", flags.precision,
                  "f32, bf16, int8, or auto: bf16 where the CPU has it")
      ->capture_default_str();
  command.add_option("-t,--threads", flags.threads, "threads; 0: one a core")
      ->capture_default_str();
}

Precision apply_compute_flags(const ComputeFlags& flags) {
  check(flags.threads >= 0, ErrorKind::usage, "--threads is {}; it must be at least 1, or 0",
        flags.threads);
  if (flags.threads > 0) set_num_threads(flags.threads);
  return resolve_precision(flags.precision);
}

}  // namespace heddle::cli
