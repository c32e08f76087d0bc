// Runs the program as a user would: fork, exec, pipes, a deadline.
#include "tests/support/cli_runner.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace heddle::testing {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Pipe {
  int read_end = -1, write_end = -1;
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("run_command: no pipe");
    read_end = ends[0];
    write_end = ends[1];
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    close_read();
    close_write();
  }
  void close_read() { close_end(read_end); }
  void close_write() { close_end(write_end); }

 private:
  static void close_end(int& end) {
    if (end >= 0) close(end);
    end = -1;
  }
};

struct Pipes {
  Pipe in, out, err;
};

[[noreturn]] void become(const std::vector<std::string>& words, const CliOptions& options,
                         const Pipes& pipes) {
  dup2(pipes.in.read_end, 0);
  dup2(pipes.out.write_end, 1);
  dup2(pipes.err.write_end, 2);
  if (!options.stdout_file.empty()) {
    const int file = open(options.stdout_file.c_str(), O_WRONLY | O_CREAT, 0644);
    if (file < 0) _exit(127);
    dup2(file, 1);
  }
  if (!options.folder.empty() && chdir(options.folder.c_str()) != 0) _exit(127);
  for (const auto& [name, value] : options.environment) setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  signal(SIGPIPE, SIG_DFL);
  execvp(arguments[0], arguments.data());
  _exit(127);
}

/// Takes what the end holds now into text; closes the pipe at its end.
void drain(Pipe& pipe, std::string& text) {
  char buffer[65536];
  const ssize_t count = read(pipe.read_end, buffer, sizeof buffer);
  if (count > 0) {
    text.append(buffer, static_cast<size_t>(count));
  } else if (count == 0 || errno != EINTR) {
    pipe.close_read();
  }
}

/// Gives the program the next piece of its input; closes the pipe after the last.
void feed(Pipe& pipe, const std::string& input, size_t& sent) {
  const ssize_t count = write(pipe.write_end, input.data() + sent, input.size() - sent);
  if (count > 0) sent += static_cast<size_t>(count);
  const bool failed = count < 0 && errno != EAGAIN && errno != EINTR;
  if (failed || sent == input.size()) pipe.close_write();
}

/// Sends the signal, and kills at the deadline.
class Watch {
 public:
  Watch(pid_t child, const CliOptions& options, CliResult& result)
      : child_(child), options_(options), result_(result) {}
  void look() {
    result_.seconds = since(start_);
    if (!sent_ && options_.signal_when && options_.signal_when(result_)) {
      kill(child_, options_.signal);
      sent_ = true;
    }
    if (result_.seconds >= options_.timeout_seconds && !result_.timed_out) {
      kill(child_, SIGKILL);
      result_.timed_out = true;
    }
  }

 private:
  pid_t child_;
  const CliOptions& options_;
  CliResult& result_;
  Clock::time_point start_ = Clock::now();
  bool sent_ = false;
};

/// Moves text between us and the program until it has ended; returns waitpid's status.
int attend(pid_t child, const CliOptions& options, Pipes& pipes, CliResult& result) {
  Watch watch(child, options, result);
  size_t sent = 0;
  int status = 0;
  bool ended = false;
  while (!ended || pipes.out.read_end >= 0 || pipes.err.read_end >= 0) {
    if (!ended) watch.look();
    const bool had_ended = ended;  // all that it wrote is in the pipes
    pollfd ends[3] = {{pipes.in.write_end, POLLOUT, 0},
                      {pipes.out.read_end, POLLIN, 0},
                      {pipes.err.read_end, POLLIN, 0}};
    poll(ends, 3, 2);  // milliseconds
    if (ends[0].revents) feed(pipes.in, options.input, sent);
    if (ends[1].revents) drain(pipes.out, result.out);
    if (ends[2].revents) drain(pipes.err, result.err);
    if (!ended) ended = waitpid(child, &status, WNOHANG) == child;
    const bool quiet = !ends[1].revents && !ends[2].revents;
    if (had_ended && quiet) break;  // a grandchild may still hold the pipes
  }
  return status;
}

}  // namespace

CliResult run_command(const std::vector<std::string>& words, const CliOptions& options) {
  signal(SIGPIPE, SIG_IGN);  // a program may end without reading its input
  CliResult result;
  Pipes pipes;
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("run_command: fork failed");
  if (child == 0) become(words, options, pipes);
  pipes.in.close_read();
  pipes.out.close_write();
  pipes.err.close_write();
  fcntl(pipes.in.write_end, F_SETFL, O_NONBLOCK);
  if (options.input.empty()) pipes.in.close_write();
  const int status = attend(child, options, pipes, result);
  result.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  if (result.exit_code == 127) throw std::runtime_error("run_command: cannot run " + words[0]);
  return result;
}

TempDir::TempDir() {
  std::string name = (std::filesystem::temp_directory_path() / "heddle-test-XXXXXX").string();
  if (!mkdtemp(name.data())) throw std::runtime_error("TempDir: cannot make " + name);
  path_ = name;
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void write_file(const std::filesystem::path& path, const std::string& text) {
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.flush()) throw std::runtime_error("write_file: cannot write " + path.string());
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("read_file: cannot read " + path.string());
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace heddle::testing
