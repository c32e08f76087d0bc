// heddle launch: ranks of one training as processes of this machine.
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "heddle/base/error.h"
#include "heddle/base/log.h"
#include "heddle/base/parallel.h"
#include "heddle/cli/commands.h"
#include "heddle/dist/group.h"
#include "heddle/dist/secret.h"
#include "heddle/dist/socket.h"

namespace heddle::cli {
namespace {

struct Flags {
  int64_t ranks = 0, restarts = 0, threads = 0;
  std::vector<std::string> command;
};

// --- cores ---------------------------------------------------------------------------------------

std::vector<int> cores_of_this_process() {
  cpu_set_t set;
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

// The cores of a rank: neighbours, an even share; shared where there are fewer cores than ranks.
cpu_set_t share_of(int64_t rank, int64_t ranks, int64_t threads, const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int64_t count = std::ssize(cores);
  const int64_t begin = threads > 0 ? rank * threads : rank * count / ranks;
  const int64_t end = threads > 0 ? begin + threads : (rank + 1) * count / ranks;
  for (int64_t i = begin; i < std::max(end, begin + 1); ++i) {
    CPU_SET(cores[static_cast<size_t>(i % count)], &set);
  }
  return set;
}

// --- one process ---------------------------------------------------------------------------------

// A rank; what it prints comes through a pipe, but for rank 0's.
struct Rank {
  pid_t process = 0;  // 0: it has ended
  int status = 0;
  int output = -1;
  std::string line;  // begun
};

// What all ranks of a start share.
struct Start {
  dist::Socket listener;
  std::string secret;
  std::vector<int> cores;
};

[[noreturn]] void become_rank(const Flags& flags, const Start& start, int64_t rank, int output,
                              pid_t launcher) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // nothing outlives a launcher that is killed
  if (getppid() != launcher) _exit(1);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const auto set_variable = [](const char* name, const std::string& value) {
    setenv(name, value.c_str(), 1);
  };
  const int64_t paid = available_cores();
  if (paid < std::ssize(start.cores)) {
    // A quota pays for fewer than may be used: which are free is the system's to say.
    const int64_t threads = flags.threads > 0 ? flags.threads : paid / flags.ranks;
    set_variable("HEDDLE_THREADS", std::to_string(std::max<int64_t>(threads, 1)));
  } else {
    const cpu_set_t set = share_of(rank, flags.ranks, flags.threads, start.cores);
    sched_setaffinity(0, sizeof set, &set);
  }
  set_variable("HEDDLE_RANK", std::to_string(rank));
  set_variable("HEDDLE_RANKS", std::to_string(flags.ranks));
  set_variable("HEDDLE_RENDEZVOUS",
               fmt::format("tcp://127.0.0.1:{}", dist::port_of(start.listener)));
  set_variable("HEDDLE_SECRET", start.secret);
  unsetenv("HEDDLE_SECRET_FILE");
  unsetenv("HEDDLE_LISTENER");
  if (rank == 0) {
    fcntl(start.listener.fd(), F_SETFD, 0);  // inherited: no other program can take the port
    set_variable("HEDDLE_LISTENER", std::to_string(start.listener.fd()));
  } else {
    const int nothing = open("/dev/null", O_RDONLY);
    if (nothing >= 0) dup2(nothing, 0);
    dup2(output, 1);
    dup2(output, 2);
  }
  std::vector<char*> words = {const_cast<char*>("heddle")};
  for (const std::string& word : flags.command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execv("/proc/self/exe", words.data());
  fmt::print(stderr, "heddle: launch: cannot start this program again: {}\n", std::strerror(errno));
  _exit(static_cast<int>(ErrorKind::system));
}

int exit_code_of(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) return fmt::format("was ended by signal {}", WTERMSIG(status));
  return fmt::format("ended with exit code {}", WEXITSTATUS(status));
}

// --- all of them ---------------------------------------------------------------------------------

// Starts ranks and stays with them until the last has ended.
class Ranks {
 public:
  explicit Ranks(const Flags& flags) : ranks_(static_cast<size_t>(flags.ranks)), flags_(flags) {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int number : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, number);
    sigprocmask(SIG_BLOCK, &signals, nullptr);
    signals_ = dist::Socket(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
    check(signals_.is_open(), ErrorKind::system, "launch: no signalfd: {}", std::strerror(errno));
  }

  // The exit code of the first that failed; of those that only follow another's failure if all do.
  int run() {
    start();
    while (count_running() > 0) {
      wait_for_news();
      end_the_rest();
    }
    for (Rank& rank : ranks_) close_output(rank);
    return failed_ == nullptr ? 0 : exit_code_of(failed_->status);
  }

  int signal() const { return signal_; }
  std::string failure() const {
    return failed_ == nullptr
               ? ""
               : fmt::format("rank {} {}", failed_ - ranks_.data(), how_it_ended(failed_->status));
  }

 private:
  void start() {
    failed_ = nullptr;
    failed_at_ = 0;
    Start start{dist::listen_at({"127.0.0.1", 0}), dist::hex_of(dist::random_bytes(32)),
                cores_of_this_process()};
    check(!start.cores.empty(), ErrorKind::system, "launch: this process may use no core");
    const pid_t launcher = getpid();
    for (size_t i = 0; i < ranks_.size(); ++i) {
      Rank& rank = ranks_[i];
      rank = {};
      int ends[2] = {-1, -1};
      check(i == 0 || pipe2(ends, O_CLOEXEC) == 0, ErrorKind::system, "launch: no pipe: {}",
            std::strerror(errno));
      rank.process = fork();
      if (rank.process == 0) {
        become_rank(flags_, start, static_cast<int64_t>(i), ends[1], launcher);
      }
      rank.output = ends[0];
      if (ends[1] >= 0) ::close(ends[1]);
      if (ends[0] >= 0) fcntl(ends[0], F_SETFL, O_NONBLOCK);
      if (rank.process < 0) {
        rank.process = 0;
        kill_all(SIGKILL);
        fail(ErrorKind::system, "launch: cannot start rank {}: {}", i, std::strerror(errno));
      }
    }
  }

  int64_t count_running() const {
    return std::ranges::count_if(ranks_, [](const Rank& r) { return r.process > 0; });
  }
  void kill_all(int number) const {
    for (const Rank& rank : ranks_) {
      if (rank.process > 0) ::kill(rank.process, number);
    }
  }

  void wait_for_news() {
    std::vector<pollfd> all = {{signals_.fd(), POLLIN, 0}};
    for (const Rank& rank : ranks_) all.push_back({rank.output, POLLIN, 0});
    ::poll(all.data(), all.size(), 200);
    for (size_t i = 0; i < ranks_.size(); ++i) {
      if (all[i + 1].revents != 0) read_output(ranks_[i]);
    }
    signalfd_siginfo news;
    while (::read(signals_.fd(), &news, sizeof news) == sizeof news) {
      const auto number = static_cast<int>(news.ssi_signo);
      if (number == SIGCHLD) continue;
      signal_ = number;
      if (number == SIGINT && news.ssi_code == SI_KERNEL) continue;  // Ctrl-C: all have it
      kill_all(number);
    }
    // One after the other, so that the first to fail is the one that is named.
    for (int status = 0; const pid_t ended = next_ended(status);) {
      for (Rank& rank : ranks_) {
        if (rank.process != ended) continue;
        rank.process = 0, rank.status = status;
        read_output(rank);
        note_failure(rank);
      }
    }
  }

  static pid_t next_ended(int& status) {
    const pid_t ended = waitpid(-1, &status, WNOHANG);
    return ended > 0 ? ended : 0;
  }

  // One that ended because another was lost is not the first to fail, though it may end first.
  void note_failure(Rank& rank) {
    const int code = exit_code_of(rank.status);
    constexpr int kFollows = static_cast<int>(ErrorKind::ranks);
    if (code == 0) return;
    if (failed_ == nullptr) failed_at_ = dist::now_seconds();
    const bool is_first = failed_ == nullptr || (exit_code_of(failed_->status) == kFollows &&
                                                 code != kFollows && !was_ended_);
    if (is_first) failed_ = &rank;
  }

  // The others find out themselves, and say so; then they are told, and at last made.
  void end_the_rest() {
    constexpr double kOwn = 3, kGrace = 22;  // seconds; a rank ends itself after 20
    if (failed_ == nullptr || count_running() == 0) return;
    const double since = dist::now_seconds() - failed_at_;
    if (since > kOwn && !was_ended_) {
      was_ended_ = true;
      kill_all(SIGTERM);
    }
    if (since > kOwn + kGrace) kill_all(SIGKILL);
  }

  void read_output(Rank& rank) {
    constexpr size_t kLongest = 1 << 16;
    char bytes[1 << 14];
    while (rank.output >= 0) {
      const ssize_t count = ::read(rank.output, bytes, sizeof bytes);
      if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
      if (count <= 0) return close_output(rank);
      rank.line.append(bytes, static_cast<size_t>(count));
      size_t begin = 0;
      for (size_t end; (end = rank.line.find('\n', begin)) != std::string::npos; begin = end + 1) {
        print(rank, rank.line.substr(begin, end - begin));
      }
      rank.line.erase(0, begin);
      if (rank.line.size() > kLongest) print(rank, std::exchange(rank.line, ""));
    }
  }
  void print(const Rank& rank, const std::string& line) const {
    log_info("rank {}: {}", &rank - ranks_.data(), line);
  }
  void close_output(Rank& rank) {
    if (!rank.line.empty()) print(rank, std::exchange(rank.line, ""));
    if (rank.output >= 0) ::close(std::exchange(rank.output, -1));
  }

  std::vector<Rank> ranks_;
  const Flags& flags_;
  dist::Socket signals_;
  Rank* failed_ = nullptr;
  double failed_at_ = 0;
  bool was_ended_ = false;
  int signal_ = 0;
};

// What a further start would not change: a wrong flag, a file that is not what it should be; nor
// what someone has asked for by a signal.
bool is_worth_another(int code) {
  const int ends[] = {0,
                      static_cast<int>(ErrorKind::usage),
                      static_cast<int>(ErrorKind::data),
                      128 + SIGHUP,
                      128 + SIGINT,
                      128 + SIGTERM};
  return std::ranges::find(ends, code) == std::end(ends);
}

void launch(Flags& flags) {
  std::vector<std::string>& command = flags.command;
  if (!command.empty() && command[0] == "--") command.erase(command.begin());
  if (!command.empty() && command[0] == "heddle") command.erase(command.begin());
  check(!command.empty(), ErrorKind::usage,
        "launch: a command is needed, as in heddle launch -n 2 train --data corpus --shards 2 "
        "--out run. "
        "See heddle launch --help");
  check(command[0][0] != '-', ErrorKind::usage,
        "launch: unknown flag '{}'. See heddle launch --help", command[0]);
  check(command[0] != "launch", ErrorKind::usage, "launch: launch cannot start itself");
  check(dist::is_rank_count(flags.ranks), ErrorKind::usage,
        "launch: --ranks is {}; 1, 2, 4, 8, 16, 32 or 64 is needed, as in heddle launch -n 2 train",
        flags.ranks);
  const bool begins_anew = std::ranges::any_of(
      command, [](const std::string& word) { return word.starts_with("--overwrite"); });
  check(flags.restarts == 0 || !begins_anew, ErrorKind::usage,
        "launch: --overwrite would begin anew at each restart; run it once without --restarts");
  const int cores = available_cores();
  check(flags.threads <= cores, ErrorKind::usage,
        "launch: --threads-per-rank is {}; this process may use {} cores", flags.threads, cores);
  if (flags.ranks * std::max<int64_t>(flags.threads, 1) > cores) {
    log_warning("{} ranks share {} cores: each rank is slower than it would be alone", flags.ranks,
                cores);
  }
  for (int64_t attempt = 0;; ++attempt) {
    Ranks ranks(flags);
    const int code = ranks.run();
    if (code == 0 && ranks.signal() == 0) return;
    if (!ranks.failure().empty()) log_info("launch: {}", ranks.failure());
    if (ranks.signal() != 0 || attempt >= flags.restarts || !is_worth_another(code)) {
      std::exit(code);
    }
    log_info("launch: starting all ranks again ({} of {})", attempt + 1, flags.restarts);
  }
}

}  // namespace

void add_launch(Subcommand& app) {
  auto [command, flags] =
      app.add_command<Flags>("launch",
                             "Start a command as several ranks on this machine, as in launch -n 4 "
                             "train --shards 8 --out run",
                             launch);
  command.add_option("-n,--ranks", flags.ranks, "how many processes: a power of two (required)");
  command
      .add_setting("--threads-per-rank", flags.threads,
                   "threads (and cores) of each rank; 0: an even share of the cores")
      .not_negative();
  command
      .add_setting("--restarts", flags.restarts,
                   "start all again up to so many times where one fails: train goes on exactly")
      .not_negative();
  command.take_rest(flags.command);
}

}  // namespace heddle::cli
