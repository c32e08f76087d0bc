// How a process learns which rank of which group it is.
#pragma once

#include <memory>
#include <string>

#include "heddle/dist/group.h"

namespace heddle::dist {

/// What the command line says of the group. What it leaves out is read from the environment:
/// HEDDLE_RENDEZVOUS, HEDDLE_RANK and HEDDLE_RANKS; else, with a rendezvous, those of mpirun
/// (OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE), or of Slurm (SLURM_PROCID, SLURM_NTASKS).
struct GroupOptions {
  std::string rendezvous = {};  ///< "tcp://host:port" of rank 0, or "file://PATH" on a shared disk
  int64_t rank = -1;            ///< this process's; -1: by the environment
  int64_t ranks = 0;            ///< how many there are; 0: by the environment
  bool any_cpu = false;         ///< ranks may differ in their instruction sets: other bits
  DType wire = DType::f32;      ///< how gradients go between ranks: f32, or bf16, see Group
  double start_seconds = 60;    ///< by when all ranks must be there; 1 at least
  double lost_seconds = 15;     ///< a rank that is silent for so long is lost; 3 at least
  double step_seconds = 600;    ///< one that does not get on for so long is given up; 3 at least
};

/// The group of this process; a LocalGroup where there is only one rank, which opens no connection.
/// Without a rendezvous, where mpirun or srun --mpi has started several ranks, bytes go by MPI.
/// The secret that ranks prove to each other is HEDDLE_SECRET, or what the file HEDDLE_SECRET_FILE
/// holds; with a file:// rendezvous rank 0 makes one and writes it there, for its owner alone.
/// Errors: usage where the flags contradict each other, a rank is there twice, versions or secrets
/// differ; ranks where some do not start in time, named; system where the port is taken.
std::unique_ptr<Group> make_group(const GroupOptions& options);

}  // namespace heddle::dist
