// Several ranks on this machine, each a process of its own that a test forks.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "heddle/dist/start.h"

namespace heddle::testing {

/// How a rank ended.
struct RankOutcome {
  int exit_code = -1;  ///< of the Error that it ended by; 128 + number for a signal; 0
  std::string text;    ///< what its work returned, or the message of its error
  double seconds = 0;  ///< from the start of all
};

/// What a rank does; its group is made within.
using RankWork = std::function<std::string(const dist::GroupOptions& options)>;

/// Processes that meet at a port of this machine.
class RankProcesses {
 public:
  /// Starts `ranks` of them. change: what is different in the options and environment of a rank.
  RankProcesses(int64_t ranks, const RankWork& work,
                const std::function<void(dist::GroupOptions&)>& change = {});
  ~RankProcesses();
  /// Sends a signal to one of them.
  void signal(int64_t rank, int number) const;
  /// Waits for the end of all; those that are still there after so many seconds are killed.
  std::vector<RankOutcome> wait(double seconds = 60);
  int port() const { return port_; }

 private:
  std::vector<pid_t> children_;
  std::vector<int> pipes_;
  std::vector<RankOutcome> outcomes_;
  int port_ = 0;
  double started_ = 0;
};

}  // namespace heddle::testing
