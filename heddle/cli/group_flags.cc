// Flags of groups of ranks.
#include "heddle/cli/group_flags.h"

namespace heddle::cli {

void add_group_flags(Subcommand& command, dist::GroupOptions& options) {
  command.begin_group(kRankFlags);
  command.add_option("--rendezvous", options.rendezvous,
                     "where several processes of one command meet: tcp://HOST:PORT of rank 0, or "
                     "file://PATH on a shared disk; else HEDDLE_RENDEZVOUS");
  command
      .add_option("--rank", options.rank,
                  "which of them this process is, from 0; else HEDDLE_RANK, OMPI_COMM_WORLD_RANK "
                  "or SLURM_PROCID")
      .not_negative();
  command
      .add_option("--ranks", options.ranks,
                  "how many there are, a power of two; else HEDDLE_RANKS, "
                  "OMPI_COMM_WORLD_SIZE or SLURM_NTASKS")
      .positive();
  command.add_flag("--any-cpu", options.any_cpu,
                   "let ranks differ in their instruction sets: the result then has other bits");
  command.add_setting("--start-seconds", options.start_seconds, "by when all ranks must be there")
      .positive();
  command
      .add_setting("--lost-seconds", options.lost_seconds,
                   "a rank that is silent for so long (3 at least) is lost: all end")
      .positive();
  command
      .add_setting("--step-seconds", options.step_seconds,
                   "and one that does not get on for so long (3 at least)")
      .positive();
  command.begin_group("Options");
}

void add_wire_flag(Subcommand& command, std::string& wire) {
  command.begin_group(kRankFlags);
  command
      .add_setting(
          "--wire", wire,
          "how gradients go between ranks; bf16: in half as many bytes, rounded log2(ranks) "
          "times, so that the result depends on the number of ranks")
      .one_of({"f32", "bf16"});
  command.begin_group("Options");
}

}  // namespace heddle::cli
