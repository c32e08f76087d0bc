// Control characters of files reach no terminal: not by messages, and not by results.
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/cli_runner.h"

namespace heddle::testing {
namespace {

constexpr const char* kEscape = "\x1b[31mred";

// What a terminal gets of the results of `heddle ARGUMENTS < input`.
std::string shown_on_a_terminal(std::vector<std::string> arguments, const std::string& input) {
  int terminal = -1, ours = -1;
  if (openpty(&ours, &terminal, nullptr, nullptr, nullptr) != 0) return "no terminal";
  arguments.insert(arguments.begin(), kProgram);
  std::vector<char*> words;
  for (std::string& argument : arguments) words.push_back(argument.data());
  words.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    if (freopen(input.c_str(), "r", stdin) != nullptr && dup2(terminal, STDOUT_FILENO) >= 0) {
      execv(words[0], words.data());
    }
    _exit(127);
  }
  close(terminal);
  std::string shown;
  char part[4096];
  for (ssize_t n; (n = read(ours, part, sizeof part)) > 0;) shown.append(part, part + n);
  close(ours);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << shown;
  return shown;
}

class Terminal : public ::testing::Test {
 protected:
  Terminal() {
    write_file(folder_ / "m/vocab.txt",
               std::string("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n") + kEscape + "\nplain\xC3\xA4\n");
    write_file(folder_ / "ids", "5 6\n");
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

 private:
  TempDir folder_;
};

TEST_F(Terminal, gets_the_control_characters_of_a_vocabulary_spelled_out) {
  const std::string shown = shown_on_a_terminal({"tokenizer", "decode", path("m")}, path("ids"));
  EXPECT_EQ(shown, "\\x1b[31mred plain\xC3\xA4\r\n");  // the terminal itself adds the '\r'
}

TEST_F(Terminal, that_is_none_but_a_pipe_gets_every_byte_as_it_is) {
  CliOptions options;
  options.input = "5 6\n";
  const CliResult result = run_heddle({"tokenizer", "decode", path("m")}, options);
  EXPECT_EQ(result.out, std::string(kEscape) + " plain\xC3\xA4\n") << result.err;
}

TEST_F(Terminal, gets_no_control_character_of_a_name_in_a_message) {
  write_file(path("m/config.json"), "{\"model_type\": \"\\u001b[31mred\"}");
  const CliResult result = run_heddle({"info", path("m")});
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_NE(result.err.find("\\x1b[31mred"), std::string::npos) << result.err;
  EXPECT_EQ(result.err.find('\x1b'), std::string::npos) << result.err;
}

}  // namespace
}  // namespace heddle::testing
