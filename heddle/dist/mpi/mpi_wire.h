// MPI, where mpirun or srun has started the process: opened at run time, so that the program needs
// no MPI to be there.
#pragma once

#include <memory>
#include <string>

#include "heddle/dist/mpi/plugin.h"
#include "heddle/dist/wire.h"

namespace heddle::dist {

/// How many processes a launcher of MPI has started, as it says in the environment; 1: none has.
int64_t ranks_started_by_mpi();

/// All calls come from one thread, which is the only one that calls MPI.
class MpiWire final : public Wire {
 public:
  /// Opens libheddle-mpi.so (the file that HEDDLE_MPI_PLUGIN names; else beside the program, in its
  /// ../lib, or where the system looks) and starts MPI. Errors: usage if it cannot be opened or has
  /// another version; ranks if MPI does not start.
  MpiWire();

  int64_t rank() const { return mpi_->rank; }
  int64_t ranks() const { return mpi_->ranks; }
  const char* library() const { return mpi_->library; }  ///< its name and version
  /// The bytes that rank 0 gives, to all.
  std::string broadcast(std::string text);

  int64_t send_some(size_t step, std::span<const std::byte> bytes) override;
  int64_t receive_some(size_t step, std::span<std::byte> room) override;
  bool wait(size_t step, bool receives, bool sends, int verdict) override;
  /// Ends MPI. After an error it is not ended: the others would be waited for.
  void close() override { mpi_->finish(); }

 private:
  void check_mpi(int error, const char* what) const;
  int32_t partner(size_t step) const { return mpi_->rank ^ (1 << step); }

  const MpiPlugin* mpi_;
  int32_t sending_ = 0, receiving_ = 0;  // bytes under way; 0: none
  int64_t idle_ = 0;                     // waits since something moved
};

}  // namespace heddle::dist
