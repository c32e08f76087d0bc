// The thread that says and hears each second who is alive.
#include "heddle/dist/watch.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "heddle/base/error.h"
#include "heddle/base/json/json.h"
#include "heddle/base/work_notes.h"

namespace heddle::dist {

namespace {

constexpr double kBeat = 1;            // seconds
constexpr double kStoodStill = 2;      // seconds from one turn of the thread to the next
constexpr double kVerdictWait = 5;     // seconds, for one on a connection that failed
constexpr double kSuspicion = 2;       // seconds, for a better reason than a failed connection
constexpr size_t kMostFailure = 8192;  // bytes of a message of another rank

std::array<Socket, 2> make_pipe() {
  int ends[2];
  check(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0, ErrorKind::system, "no pipe: {}",
        std::strerror(errno));
  return {Socket(ends[0]), Socket(ends[1])};
}

void write_byte(const Socket& pipe) {
  const char byte = 0;
  (void)!::write(pipe.fd(), &byte, 1);
}

}  // namespace

Watch::Watch(int64_t rank, std::vector<std::string> hosts, std::vector<Socket> lines,
             const WatchOptions& options)
    : rank_(rank),
      hosts_(std::move(hosts)),
      lines_(std::move(lines)),
      options_(options),
      states_(lines_.size()),
      verdict_pipe_(make_pipe()),
      wake_pipe_(make_pipe()) {
  for (State& state : states_) state.heard = state.progress = now_seconds();
  for (const Socket& line : lines_) {
    if (line.is_open()) watch_connection(line, options_.lost_seconds);
  }
  thread_ = std::thread([this] { run(); });
}

Watch::~Watch() {
  {
    std::lock_guard lock(mutex_);
    is_leaving_ = true;
  }
  write_byte(wake_pipe_[1]);
  thread_.join();
}

std::string Watch::name(int64_t rank) const {
  return fmt::format("rank {} ({})", rank, hosts_[static_cast<size_t>(rank)]);
}

void Watch::note_update(int64_t update) {
  update_ = update;
  ++notes_;
  expects_work_ = true;
}

// The note before the end of the wait: who sees no wait sees the note.
void Watch::note_wait(int64_t for_rank) {
  if (for_rank < 0) ++notes_;
  waits_for_ = for_rank;
}

void Watch::leave_with(std::string_view message) noexcept {
  try {
    std::lock_guard lock(mutex_);
    if (!verdict_.empty() || !failure_.empty()) return;  // one that follows from another's
    failure_ = message.substr(0, kMostFailure);
    if (failure_.empty()) failure_ = "it has failed";
  } catch (...) {  // no memory for the message
  }
  write_byte(wake_pipe_[1]);
}

void Watch::check_alive() {
  std::lock_guard lock(mutex_);
  if (!verdict_.empty()) throw Error(ErrorKind::ranks, verdict_);
}

void Watch::fail_connection(int64_t rank, std::string_view why) {
  std::unique_lock lock(mutex_);
  const std::string text =
      fmt::format("the connection of {} to {} has failed: {}", name(rank_), name(rank), why);
  suspect_ = text;
  write_byte(wake_pipe_[1]);
  const auto wait = std::chrono::duration<double>(kVerdictWait);
  changed_.wait_for(lock, wait, [&] { return !verdict_.empty(); });
  throw Error(ErrorKind::ranks, verdict_.empty() ? text : verdict_);
}

// --- the thread ----------------------------------------------------------------------------------

void Watch::run() {
  double next_beat = now_seconds(), last_turn = next_beat;
  while (true) {
    std::vector<pollfd> all = {{wake_pipe_[0].fd(), POLLIN, 0}};
    for (const Socket& line : lines_) all.push_back({line.fd(), POLLIN, 0});  // -1 is passed over
    const double left = std::clamp(next_beat - now_seconds(), 0.0, kBeat);
    ::poll(all.data(), all.size(), static_cast<int>(left * 1000) + 1);
    const double now = now_seconds();
    if (now - last_turn > kStoodStill) forgive(now - last_turn - kBeat);
    last_turn = now;
    char bytes[64];
    while (::read(wake_pipe_[0].fd(), bytes, sizeof bytes) > 0) {
    }
    for (size_t rank = 0; rank < lines_.size(); ++rank) {
      if (all[rank + 1].revents != 0) read_line(rank);
    }
    if (now >= next_beat) {
      tick(now);
      next_beat = now + kBeat;
    }
    std::string failure, suspect;
    {
      std::lock_guard lock(mutex_);
      std::swap(suspect, suspect_);
      failure = failure_;
    }
    if (!suspect.empty() && rank_ == 0 && suspicion_.empty()) {
      suspicion_ = suspect, suspected_at_ = now;
    } else if (!suspect.empty() && rank_ != 0) {
      say(0, Json::object({{"suspect", suspect}}));
    }
    if (!failure.empty()) {
      if (rank_ == 0) {
        set_verdict(fmt::format("{}: {}", name(0), failure));
      } else {
        say(0, Json::object({{"failed", failure}}));
        std::lock_guard lock(mutex_);
        failure_.clear();
        is_told_ = true;
      }
    }
    tell_verdict();
    std::unique_lock lock(mutex_);
    if (is_leaving_) break;
    // The work of this rank may be far from where it would notice; what it has saved is safe.
    if (!verdict_.empty() && now > verdict_at_ + options_.exit_seconds) {
      fmt::print(stderr, "heddle: {}\n", verdict_);
      _exit(static_cast<int>(ErrorKind::ranks));
    }
  }
  finish_lines();
}

// This process has stood still for so long (Ctrl-Z, a machine that was paused), and may be the
// first of all ranks that goes on: the time in which it could hear nobody counts for no deadline.
void Watch::forgive(double seconds) {
  for (State& state : states_) state.heard += seconds, state.progress += seconds;
  own_.progress += seconds;
  suspected_at_ += seconds;
  const std::lock_guard lock(mutex_);
  verdict_at_ += seconds;
}

void Watch::tick(double now) {
  note_own(now);
  const Json beat =
      Json::object({{"update", own_.update}, {"notes", own_.notes}, {"waits_for", own_.waits_for}});
  for (size_t rank = 0; rank < lines_.size(); ++rank) {
    if (lines_[rank].is_open()) say(rank, beat);
  }
  find_silent(now);
  if (rank_ == 0) find_stuck(now);
  if (!suspicion_.empty() && now > suspected_at_ + kSuspicion) set_verdict(suspicion_);
}

void Watch::note_own(double now) {
  own_.waits_for = waits_for_;  // first, see note_wait()
  own_.update = update_;
  const int64_t notes = expects_work_ ? notes_ + work_noted() + 1 : 0;
  if (notes != own_.notes) own_.progress = now;
  own_.notes = notes;
}

std::string Watch::in_update(const State& state) const {
  return state.update < 0 ? "" : fmt::format(", in update {}", state.update);
}

void Watch::read_line(size_t rank) {
  State& state = states_[rank];
  std::array<std::byte, 4096> room;
  int64_t count = 0;
  while ((count = receive_some(lines_[rank], room)) > 0) {
    state.received.append(reinterpret_cast<const char*>(room.data()), static_cast<size_t>(count));
    state.heard = now_seconds();
    uint32_t size = 0;
    while (state.received.size() >= sizeof size) {
      std::memcpy(&size, state.received.data(), sizeof size);
      if (size > kMostFrame || state.received.size() < sizeof size + size) break;
      const std::string text = state.received.substr(sizeof size, size);
      state.received.erase(0, sizeof size + size);
      try {
        take_message(rank, Json::parse(text, name(static_cast<int64_t>(rank))));
      } catch (const Error& error) {
        set_verdict(error.what());
      }
    }
    if (size > kMostFrame) break;
  }
  if (count == 0) return;
  lines_[rank].close();
  if (state.is_finished) return;
  set_verdict(fmt::format("{} has ended without a word{}; was it killed?",
                          name(static_cast<int64_t>(rank)), in_update(state)));
}

void Watch::take_message(size_t rank, const Json& message) {
  State& state = states_[rank];
  if (const Json* verdict = message.find("verdict")) {
    set_verdict(verdict->as_string());
  } else if (const Json* failed = message.find("failed")) {
    state.is_finished = true;
    set_verdict(fmt::format("{}: {}", name(static_cast<int64_t>(rank)), failed->as_string()));
  } else if (const Json* suspect = message.find("suspect")) {
    if (suspicion_.empty()) suspicion_ = suspect->as_string(), suspected_at_ = now_seconds();
  } else if (message.contains("bye")) {
    state.is_finished = true;
  } else {
    const int64_t notes = message.get_int("notes");
    if (notes != state.notes) state.progress = now_seconds();
    state.notes = notes;
    state.update = message.get_int("update");
    const int64_t waits_for = message.get_int("waits_for");
    check(waits_for >= -1 && waits_for < std::ssize(hosts_), ErrorKind::ranks,
          "{} says that it waits for rank {} of {}", name(static_cast<int64_t>(rank)), waits_for,
          hosts_.size());
    state.waits_for = waits_for;
  }
}

void Watch::find_silent(double now) {
  for (size_t rank = 0; rank < states_.size(); ++rank) {
    const State& state = states_[rank];
    if (!lines_[rank].is_open() || state.is_finished) continue;
    const double silence = now - state.heard;
    if (silence < options_.lost_seconds) continue;
    set_verdict(fmt::format("{} was last heard {:.0f} s ago{}", name(static_cast<int64_t>(rank)),
                            silence, in_update(state)));
  }
}

// A rank that computes for too long is named; those that wait for it are not. Where all wait, a
// connection between two of them lets nothing through.
void Watch::find_stuck(double now) {
  std::vector<std::string> waiting;
  for (size_t rank = 0; rank < hosts_.size(); ++rank) {
    const State& state = rank == 0 ? own_ : states_[rank];
    if (state.notes == 0 || state.is_finished) continue;
    if (state.waits_for == static_cast<int64_t>(rank)) continue;
    if (now - state.progress < options_.step_seconds) continue;
    const auto number = static_cast<int64_t>(rank);
    if (state.waits_for < 0) {
      return set_verdict(fmt::format("{} has not got on for {:.0f} s{}", name(number),
                                     now - state.progress, in_update(state)));
    }
    waiting.push_back(fmt::format("{} waits for {}", name(number), name(state.waits_for)));
  }
  if (waiting.size() != hosts_.size()) return;
  set_verdict(fmt::format("no rank has got on for {:g} s: {}", options_.step_seconds,
                          fmt::join(waiting, ", ")));
}

void Watch::say(size_t rank, const Json& message) {
  if (rank >= lines_.size() || !lines_[rank].is_open()) return;
  // A line that takes nothing any more belongs to a rank that is about to be found silent.
  send_all(lines_[rank], framed(message.dump()), now_seconds());
}

void Watch::set_verdict(const std::string& text) {
  {
    std::lock_guard lock(mutex_);
    if (!verdict_.empty()) return;
    verdict_ = text;
    verdict_at_ = now_seconds();
  }
  write_byte(verdict_pipe_[1]);
  changed_.notify_all();
}

// Rank 0 tells all others, once.
void Watch::tell_verdict() {
  if (rank_ != 0 || is_told_) return;
  std::string verdict;
  {
    std::lock_guard lock(mutex_);
    verdict = verdict_;
  }
  if (verdict.empty()) return;
  is_told_ = true;
  for (size_t rank = 1; rank < lines_.size(); ++rank) {
    say(rank, Json::object({{"verdict", verdict}}));
  }
}

// The last words must arrive: a connection that is closed while something unread lies in it is
// reset, and takes with it what the other end has not read either.
void Watch::finish_lines() {
  const bool was_cut = !verdict_.empty() || is_told_;
  const double until = now_seconds() + (was_cut ? 2 : 0.2);
  for (size_t rank = 0; rank < lines_.size(); ++rank) {
    if (!lines_[rank].is_open()) continue;
    if (!was_cut) say(rank, Json::object({{"bye", true}}));
    ::shutdown(lines_[rank].fd(), SHUT_WR);
  }
  std::array<std::byte, 4096> room;
  for (Socket& line : lines_) {
    while (line.is_open() && wait_for(line, false, until)) {
      if (receive_some(line, room) < 0) line.close();
    }
  }
}

}  // namespace heddle::dist
