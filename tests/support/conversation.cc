// A running heddle with its input, output and messages as files of ours.
#include "tests/support/conversation.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <stdexcept>

#include "tests/support/places.h"

namespace heddle::testing {
namespace {

constexpr int kPatience = 60'000;  // milliseconds

std::array<int, 2> make_pipe() {
  std::array<int, 2> ends;
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("Conversation: no pipe");
  return ends;
}

// The program's end first.
std::array<int, 2> make_terminal() {
  const int ours = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (ours < 0 || grantpt(ours) != 0 || unlockpt(ours) != 0) {
    throw std::runtime_error("Conversation: no terminal");
  }
  return {open(ptsname(ours), O_RDWR | O_NOCTTY | O_CLOEXEC), ours};
}

}  // namespace

Conversation::Conversation(const std::vector<std::string>& arguments, Input input) : input_(input) {
  signal(SIGPIPE, SIG_IGN);  // a program may end without reading its input
  const auto in = input == Input::pipe ? make_pipe() : make_terminal();
  const auto out = make_pipe(), err = make_pipe();
  std::vector<char*> words = {const_cast<char*>(kProgram)};
  for (const std::string& word : arguments) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  process_ = fork();
  if (process_ == 0) {
    dup2(in[0], 0);
    dup2(out[1], 1);
    dup2(err[1], 2);
    execv(words[0], words.data());
    _exit(127);
  }
  close(in[0]);
  close(out[1]);
  close(err[1]);
  in_ = in[1];
  out_ = out[0];
  err_ = err[0];
}

Conversation::~Conversation() {
  if (process_ > 0) {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  for (const int file : {in_, out_, err_}) {
    if (file >= 0) close(file);
  }
}

void Conversation::say(const std::string& text) {
  if (write(in_, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    throw std::runtime_error("Conversation: cannot write");
  }
}

std::string Conversation::read_until(int file, const std::string& end) {
  std::string text;
  pollfd one = {file, POLLIN, 0};
  char byte;
  while (!text.ends_with(end) && poll(&one, 1, kPatience) == 1 && read(file, &byte, 1) == 1) {
    text += byte;
  }
  return text;
}

int Conversation::end() {
  if (input_ == Input::terminal) {
    say("\x04");
  } else {
    close(in_);
    in_ = -1;
  }
  int status = 0;
  waitpid(process_, &status, 0);
  process_ = -1;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace heddle::testing
