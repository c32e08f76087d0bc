// SIGINT, SIGTERM and SIGHUP, noted in one atomic.
#include "heddle/base/signals.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace heddle {
namespace {

std::atomic<int> noted{0};
std::atomic<bool> has_hung_up{false};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may not take a lock");

std::atomic<int64_t> noted_at{0};  // milliseconds
static_assert(std::atomic<int64_t>::is_always_lock_free);

int64_t now_milliseconds() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{1000} * now.tv_sec + now.tv_nsec / 1'000'000;
}

// Ctrl-C goes to all processes of a terminal, and `timeout`, systemd and launchers of ranks send
// their signal to a process and to its group: what comes again at once is the same request.
void note_signal(int number) {
  constexpr int64_t kSameRequest = 300;  // milliseconds
  const int64_t now = now_milliseconds();
  int64_t never = 0;
  noted_at.compare_exchange_strong(never, now);  // first: a second signal may come in between
  int none = 0;
  const bool is_again = !noted.compare_exchange_strong(none, number);
  // A terminal that is closed sends SIGHUP, and its shell may say so once more, later.
  if (is_again && number != SIGHUP && now - noted_at > kSameRequest) {
    _exit(128 + number);
  }
}

void handle(int number, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;  // a read that is under way goes on; the trainer polls
  sigemptyset(&action.sa_mask);
  sigaction(number, &action, nullptr);
}

bool is_left_to_the_system(int number) {
  struct sigaction now = {};
  sigaction(number, nullptr, &now);
  return now.sa_handler == SIG_DFL;
}

}  // namespace

void install_signal_handlers() {
  handle(SIGINT, note_signal);
  handle(SIGTERM, note_signal);
  if (is_left_to_the_system(SIGHUP)) handle(SIGHUP, note_signal);
}

DeferredSignals::DeferredSignals() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    if (!is_left_to_the_system(number)) continue;
    handle(number, note_signal);
    numbers_.push_back(number);
  }
}

DeferredSignals::~DeferredSignals() {
  for (const int number : numbers_) handle(number, SIG_DFL);
  if (std::ranges::find(numbers_, noted.load()) == numbers_.end()) return;
  noted_at = 0;
  raise(noted.exchange(0));
}

void install_hangup_handler() {
  handle(SIGHUP, [](int) { has_hung_up = true; });
}

bool take_hangup() { return has_hung_up.exchange(false); }

int pending_signal() { return noted.load(); }

}  // namespace heddle
