// Forks ranks, gathers what they say and how they end.
#include "tests/support/rank_processes.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "heddle/base/error.h"
#include "heddle/dist/socket.h"

namespace heddle::testing {

namespace {

[[noreturn]] void be_rank(const RankWork& work, const dist::GroupOptions& options, int pipe) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::string text;
  int code = 0;
  try {
    text = work(options);
  } catch (const Error& error) {
    text = error.what();
    code = error.exit_code();
  }
  (void)!write(pipe, text.data(), text.size());
  _exit(code);
}

}  // namespace

RankProcesses::RankProcesses(int64_t ranks, const RankWork& work,
                             const std::function<void(dist::GroupOptions&)>& change) {
  dist::Socket listener = dist::listen_at({"127.0.0.1", 0});
  port_ = dist::port_of(listener);
  started_ = dist::now_seconds();
  setenv("HEDDLE_SECRET", "a secret that tests share", 1);
  setenv("HEDDLE_LISTENER", std::to_string(listener.fd()).c_str(), 1);
  outcomes_.resize(static_cast<size_t>(ranks));
  for (int64_t rank = 0; rank < ranks; ++rank) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) abort();
    const pid_t child = fork();
    if (child == 0) {
      dist::GroupOptions options;
      options.rendezvous = fmt::format("tcp://127.0.0.1:{}", port_);
      options.rank = rank, options.ranks = ranks;
      options.start_seconds = 20;
      if (rank != 0) listener.close();
      if (change) change(options);
      be_rank(work, options, ends[1]);
    }
    close(ends[1]);
    children_.push_back(child);
    pipes_.push_back(ends[0]);
  }
  unsetenv("HEDDLE_LISTENER");
}

RankProcesses::~RankProcesses() {
  for (const pid_t child : children_) {
    if (child <= 0) continue;
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  for (const int pipe : pipes_) close(pipe);
}

void RankProcesses::signal(int64_t rank, int number) const {
  kill(children_[static_cast<size_t>(rank)], number);
}

std::vector<RankOutcome> RankProcesses::wait(double seconds) {
  const double until = dist::now_seconds() + seconds;
  size_t left = children_.size();
  while (left > 0) {
    const bool is_late = dist::now_seconds() > until;
    for (size_t i = 0; i < children_.size(); ++i) {
      if (children_[i] <= 0) continue;
      if (is_late) kill(children_[i], SIGKILL);
      RankOutcome& outcome = outcomes_[i];
      pollfd one = {pipes_[i], POLLIN, 0};
      char bytes[65536];
      while (poll(&one, 1, 0) > 0) {
        const ssize_t count = read(pipes_[i], bytes, sizeof bytes);
        if (count <= 0) break;
        outcome.text.append(bytes, static_cast<size_t>(count));
      }
      int status = 0;
      const bool has_pipe_ended = (one.revents & POLLHUP) != 0;
      if (!has_pipe_ended && !is_late) continue;
      if (waitpid(children_[i], &status, WNOHANG) != children_[i]) continue;
      outcome.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
      outcome.seconds = dist::now_seconds() - started_;
      children_[i] = 0;
      --left;
    }
    usleep(2000);
  }
  return outcomes_;
}

}  // namespace heddle::testing
