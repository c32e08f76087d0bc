// The flag --profile, the trace file, and the end by a signal.
#include "heddle/cli/profile.h"
#include "heddle/cli/command_line.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <mutex>
#include <span>
#include <thread>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/base/log.h"
#include "heddle/base/profile.h"
#include "heddle/base/progress.h"
#include "heddle/inspect/pages/page.h"

namespace heddle::cli {
namespace {

const std::string kFlag = "--profile";

/// Whoever writes the trace file keeps the lock until it is whole.
struct Session {
  std::mutex mutex;
  std::string path;
};
Session& session() {
  static Session* session = new Session;  // never destroyed: a signal may come late
  return *session;
}

std::atomic<int> signal_pipe{-1};  // where the handler puts the number of the first signal
std::atomic<bool> is_signalled{false};

void note_signal(int number) {
  const auto byte = static_cast<unsigned char>(number);
  if (is_signalled.exchange(true) || write(signal_pipe, &byte, 1) != 1) _exit(128 + number);
}

// As a whole, in the place of an older one.
void write_file(const Session& s, const Profile& profile) {
  write_file_atomic(s.path, [&](const ByteSink& sink) {
    write_trace(profile, [&](std::string_view text) { sink(std::as_bytes(std::span(text))); });
  });
}

void write_profile(const Session& s, const Profile& profile) {
  set_status_line("");
  fmt::print(stderr, "{}", profile_tables(profile));
  write_file(s, profile);
  const auto kept = static_cast<int64_t>(profile.events.size());
  fmt::print(stderr, "\ntrace: {}{}; open it in chrome://tracing or ui.perfetto.dev\n", s.path,
             profile.events_left_out == 0
                 ? ""
                 : fmt::format(", the first {} of {} events", format_count(kept),
                               format_count(kept + profile.events_left_out)));
}

// Waits for a signal; then the profile is written, and the program ends as the signal would have
// ended it. Never returns.
void end_at_signal(int pipe_end) {
  unsigned char number = 0;
  while (read(pipe_end, &number, 1) != 1) {
  }
  Session& s = session();
  const std::lock_guard lock(s.mutex);  // to the end: nobody else may write
  try {
    if (const auto profile = stop_profile()) write_profile(s, *profile);
  } catch (const std::exception& e) {
    log_error("{}", e.what());
  }
  _exit(128 + number);
}

void watch_signals() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail_errno("cannot make a pipe", kFlag, errno);
  signal_pipe = ends[1];
  std::thread(end_at_signal, ends[0]).detach();
  struct sigaction action = {}, before = {};
  action.sa_handler = note_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (const int number : {SIGINT, SIGTERM}) {
    sigaction(number, nullptr, &before);
    if (before.sa_handler != SIG_IGN) sigaction(number, &action, nullptr);
  }
}

}  // namespace

void add_profile_flag(Subcommand& app, std::string& path) {
  app.add_flag(kFlag, path,
               fmt::format("time and bytes by op, layer and phase, and a Chrome trace [{}]",
                           kDefaultTrace))
      .option_text("[FILE.json]")
      .writes_file();
  for (Subcommand& command : app.get_subcommands()) add_profile_flag(command, path);
}

std::vector<std::string> join_profile_flag(const std::vector<std::string>& arguments) {
  std::vector<std::string> joined;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word == "--") {  // what follows are no flags
      joined.insert(joined.end(), arguments.begin() + static_cast<std::ptrdiff_t>(i),
                    arguments.end());
      break;
    }
    if (word != kFlag && word != kFlag + "=") {
      joined.push_back(word);
    } else if (word == kFlag && i + 1 < arguments.size() && arguments[i + 1].ends_with(".json")) {
      joined.push_back(kFlag + "=" + arguments[++i]);
    } else {
      joined.push_back(kFlag + "=" + kDefaultTrace);
    }
  }
  return joined;
}

void start_profile_session(const std::string& trace_path) {
  Session& s = session();
  inspect::check_output(trace_path, "the trace of --profile");
  s.path = trace_path;
  watch_signals();
  start_profile();
}

void finish_profile_session() {
  Session& s = session();
  const std::lock_guard lock(s.mutex);
  if (const auto profile = stop_profile()) write_profile(s, *profile);
}

ProfileAtExit::~ProfileAtExit() {
  try {
    finish_profile_session();
  } catch (const std::exception& e) {
    log_error("{}", e.what());
  }
}

}  // namespace heddle::cli
