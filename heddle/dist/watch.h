// Who of the group is alive: every rank says so each second to rank 0, which says who is lost.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "heddle/dist/socket.h"

namespace heddle {
class Json;
}

namespace heddle::dist {

struct WatchOptions {
  double lost_seconds = 15;   ///< of silence
  double step_seconds = 600;  ///< without progress: an update, work that was noted, an exchange
  double exit_seconds = 20;   ///< from a loss to the end of this process, wherever it is
};

/// A thread with connections of its own. What it finds, the verdict, is a text that names the rank
/// that is lost, has failed or does not get on; the first one counts.
class Watch {
 public:
  /// lines: by rank, see Meeting.
  Watch(int64_t rank, std::vector<std::string> hosts, std::vector<Socket> lines,
        const WatchOptions& options);
  /// Says good-bye to the others.
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  /// See Group; any thread.
  void note_update(int64_t update);
  void expect_work() { expects_work_ = true; }
  void note_input_wait(bool waits) { note_wait(waits ? rank_ : -1); }
  /// This rank waits for another; -1: no longer, and it has got on by what came.
  void note_wait(int64_t for_rank);
  /// This rank ends by an error of its own.
  void leave_with(std::string_view message) noexcept;

  /// Errors: ranks, once there is a verdict.
  void check_alive();
  /// Can be read once there is a verdict.
  int verdict_fd() const { return verdict_pipe_[0].fd(); }
  /// A connection to a rank has failed: waits for the verdict on it, or for want of one gives its
  /// own. Errors: always ranks.
  [[noreturn]] void fail_connection(int64_t rank, std::string_view why);
  /// "rank 3 (host b)"
  std::string name(int64_t rank) const;

 private:
  // What is known of a rank; of ranks other than 0 only rank 0 is watched.
  struct State {
    double heard = 0;                // when it last said something
    double progress = 0;             // when its notes last grew
    int64_t update = -1, notes = 0;  // 0: it has no deadline yet
    int64_t waits_for = -1;          // itself: for input
    bool is_finished = false;        // it has said good-bye
    std::string received;
  };

  void run();
  void tick(double now);
  void forgive(double seconds);
  void read_line(size_t rank);
  void take_message(size_t rank, const Json& message);
  void find_silent(double now);
  void find_stuck(double now);
  void say(size_t rank, const Json& message);
  void set_verdict(const std::string& text);
  void tell_verdict();
  void finish_lines();
  std::string in_update(const State& state) const;
  void note_own(double now);

  const int64_t rank_;
  const std::vector<std::string> hosts_;
  std::vector<Socket> lines_;
  const WatchOptions options_;
  std::vector<State> states_;  // by line; the thread's alone
  State own_;                  // the same
  double suspected_at_ = 0;    // when a rank said that its connection to another failed
  std::string suspicion_;

  std::atomic<int64_t> update_{-1}, notes_{0}, waits_for_{-1};
  std::atomic<bool> expects_work_{false};

  std::mutex mutex_;
  std::condition_variable changed_;
  std::string verdict_, failure_, suspect_;  // failure_, suspect_: to be sent by the thread
  double verdict_at_ = 0;
  bool is_leaving_ = false, is_told_ = false;
  std::array<Socket, 2> verdict_pipe_, wake_pipe_;
  std::thread thread_;
};

}  // namespace heddle::dist
