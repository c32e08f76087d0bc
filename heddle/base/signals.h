// SIGINT, SIGTERM and SIGHUP: the work at hand is finished and saved before the program ends.
#pragma once

#include <vector>

namespace heddle {

/// From now on the first SIGINT, SIGTERM or SIGHUP is only noted, for pending_signal() to see, and
/// a second one of the first two, 0.3 s later or more, ends the process at once with 128 + its
/// number. A SIGHUP that is ignored (`nohup`) stays so. For commands that poll; the others keep the
/// system's behaviour. Calling it again changes nothing.
void install_signal_handlers();

/// While it lives a SIGINT, SIGTERM or SIGHUP that would end the process is noted instead, for
/// pending_signal() to see; the process ends by it when this is destroyed. For what must not stay
/// behind.
class DeferredSignals {
 public:
  DeferredSignals();
  ~DeferredSignals();
  DeferredSignals(const DeferredSignals&) = delete;
  DeferredSignals& operator=(const DeferredSignals&) = delete;

 private:
  std::vector<int> numbers_;  // of those that would
};

/// From now on a SIGHUP is a request of its own, for take_hangup() to see and not pending_signal().
void install_hangup_handler();
/// Whether a SIGHUP came since the last call.
bool take_hangup();

/// The number of the signal noted since install_signal_handlers(), 0 if there was none.
/// The program ends with exit code 128 + this number (129, 130 or 143) once its command has
/// returned.
int pending_signal();

}  // namespace heddle
