// The program: its commands, and how each way of ending becomes an exit code.
#include <fcntl.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <iostream>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include "heddle/base/error.h"
#include "heddle/base/files/mmap.h"
#include "heddle/base/log.h"
#include "heddle/base/names.h"
#include "heddle/base/signals.h"
#include "heddle/cli/commands.h"
#include "heddle/cli/flags/shared_flags.h"
#include "heddle/cli/lines.h"
#include "heddle/cli/profile.h"
#include "heddle/cli/usage_error.h"

namespace {

using heddle::ErrorKind;

using AddCommand = void (*)(heddle::cli::Subcommand&);

/// The command table, in the order of `heddle --help`, where each group has its heading.
struct CommandGroup {
  const char* name;
  std::vector<AddCommand> commands;
};

const std::vector<CommandGroup>& command_groups() {
  using namespace heddle::cli;
  static const std::vector<CommandGroup> groups = {
      {"Train", {add_train, add_tokenizer, add_compare, add_demo}},
      {"Use", {add_translate, add_generate, add_fill, add_classify, add_embed, add_forward}},
      {"Measure", {add_eval, add_score, add_align, add_bench}},
      {"Look inside", {add_info, add_analyze, add_attention, add_explain, add_positions}},
      {"Data and files", {add_phrasebook, add_export}},
      {"Tools", {add_completion, add_manual}},
  };
  return groups;
}

/// Adds every command under the heading of its group.
void add_commands(heddle::cli::Subcommand& program) {
  for (const CommandGroup& group : command_groups()) {
    for (const AddCommand add : group.commands) {
      add(program);
      program.get_subcommands().back().app().group(group.name);
    }
  }
}

/// `heddle help train` is `heddle train --help`.
std::vector<std::string> help_first(std::vector<std::string> arguments) {
  if (arguments.empty() || arguments[0] != "help") return arguments;
  arguments.erase(arguments.begin());
  arguments.emplace_back("--help");
  return arguments;
}

/// Results go to stdout: a full disk must not pass for success.
void finish_output() {
  errno = 0;
  const bool stream_failed = !std::cout.flush();
  if (std::fflush(stdout) == 0 && !std::ferror(stdout) && !stream_failed) return;
  heddle::cli::fail_results(errno);
}

int run(const std::vector<std::string>& words) {
  const std::vector<std::string> arguments = help_first(heddle::cli::join_profile_flag(words));
  CLI::App app("Train, evaluate and use the Transformer family, natively.", "heddle");
  app.set_version_flag("-v,-V,--version", std::string("heddle ") + heddle::version(),
                       "print the version and exit");
  app.require_subcommand(1);
  app.failure_message(CLI::FailureMessage::simple);
  app.footer("`heddle COMMAND --help` shows a command's flags; `heddle help COMMAND` does too.");
  heddle::cli::Subcommand program(app);
  add_commands(program);
  std::string trace;
  heddle::cli::add_profile_flag(program, trace);
  app.parse_complete_callback([&trace] {  // all flags are right; the command has not begun
    if (!trace.empty()) heddle::cli::start_profile_session(trace);
  });
  const heddle::cli::ProfileAtExit profile;

  const heddle::cli::Command command = heddle::cli::find_command(app, arguments);
  try {
    // CLI11 takes the arguments last to first.
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      app.exit(error);  // prints the help or the version that was asked for
    } else {
      throw heddle::Error(ErrorKind::usage, explain_usage(error, command, arguments));
    }
  }
  finish_output();
  heddle::cli::finish_profile_session();
  const int signal = heddle::pending_signal();
  return signal ? 128 + signal : 0;
}

int report(ErrorKind kind, const char* message) {
  std::fflush(stdout);  // the results that were reached come before the message
  std::string text = heddle::printable(message);
  constexpr size_t kLongest = 8192;  // a name in a damaged file can be megabytes long
  if (text.size() > kLongest) text = text.substr(0, kLongest) + " ...";
  fmt::print(stderr, "heddle: {}\n", text);
  return static_cast<int>(kind);
}

/// A write to the standard output that failed, as it is said everywhere.
int report_output(int reason) {
  try {
    heddle::cli::fail_results(reason);
  } catch (const heddle::Error& error) {
    return report(error.kind(), error.what());
  }
}

/// The three standard files exist from here on, so that no file of ours takes their number. One
/// that was closed fails when it is used, rather than swallowing results.
void claim_standard_files() {
  for (int number = 0; number <= 2; ++number) {
    if (fcntl(number, F_GETFD) < 0) open("/dev/null", number == 0 ? O_WRONLY : O_RDONLY);
  }
}

}  // namespace

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_DFL);  // a closed pipe ends the program quietly, whatever the parent set
  signal(SIGXFSZ, SIG_IGN);  // a file at its greatest size (ulimit -f) is an error of write()
  claim_standard_files();
  heddle::explain_cut_files();
  heddle::guard_terminal();
  heddle::name_fields_by(heddle::cli::flag_of);
  try {
    return run({argv + 1, argv + argc});
  } catch (const heddle::Error& error) {
    return report(error.kind(), error.what());
  } catch (const std::bad_alloc&) {
    return report(ErrorKind::system, "out of memory");
  } catch (const std::system_error& error) {  // as fmt throws it where a write fails
    if (!std::ferror(stdout)) return report(ErrorKind::system, error.what());
    return report_output(error.code().value());
  } catch (const std::exception& error) {
    return report(ErrorKind::internal,
                  fmt::format("this is a bug in heddle: {}", error.what()).c_str());
  } catch (...) {
    return report(ErrorKind::internal, "this is a bug in heddle: an unknown exception");
  }
}
