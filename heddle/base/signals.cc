// SIGINT and SIGTERM, noted in one atomic.
#include "heddle/base/signals.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>

namespace heddle {
namespace {

std::atomic<int> noted{0};
std::atomic<bool> has_hung_up{false};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may not take a lock");

void note_signal(int number) {
  int none = 0;
  if (!noted.compare_exchange_strong(none, number)) _exit(128 + number);
}

}  // namespace

void install_signal_handlers() {
  struct sigaction action = {};
  action.sa_handler = note_signal;
  action.sa_flags = SA_RESTART;  // a read that is under way goes on; the trainer polls
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

void install_hangup_handler() {
  struct sigaction action = {};
  action.sa_handler = [](int) { has_hung_up = true; };
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGHUP, &action, nullptr);
}

bool take_hangup() { return has_hung_up.exchange(false); }

int pending_signal() { return noted.load(); }

}  // namespace heddle
