// Talks with a running heddle: writes to its input and reads its answers while it runs.
#pragma once

#include <string>
#include <vector>

namespace heddle::testing {

/// heddle with these arguments, its standard input a pipe that stays open, or a terminal.
class Conversation {
 public:
  enum class Input { pipe, terminal };
  explicit Conversation(const std::vector<std::string>& arguments, Input input = Input::pipe);
  ~Conversation();
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;

  void say(const std::string& text);
  /// What comes to the standard output, or error, until it ends with `end`; as far as it came if
  /// the program ends or gives nothing for a minute.
  std::string answer(const std::string& end = "\n") { return read_until(out_, end); }
  std::string message(const std::string& end = "\n") { return read_until(err_, end); }
  /// Ends the input (on a terminal by Ctrl-D). returns: the exit code
  int end();

 private:
  static std::string read_until(int file, const std::string& end);

  Input input_;
  int process_ = -1, in_ = -1, out_ = -1, err_ = -1;
};

}  // namespace heddle::testing
