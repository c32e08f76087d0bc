// The program: its commands, and how each way of ending becomes an exit code.
#include <fcntl.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include "heddle/base/error.h"
#include "heddle/base/mapped_files.h"
#include "heddle/base/nearest.h"
#include "heddle/base/signals.h"
#include "heddle/base/terminal.h"
#include "heddle/base/version.h"
#include "heddle/cli/commands.h"
#include "heddle/cli/profile.h"

namespace {

using heddle::ErrorKind;

using AddCommand = void (*)(CLI::App&);

/// The command table, in the order of `heddle --help`.
constexpr AddCommand kCommands[] = {
    heddle::cli::add_tokenizer,  heddle::cli::add_train,      heddle::cli::add_translate,
    heddle::cli::add_generate,   heddle::cli::add_eval,       heddle::cli::add_score,
    heddle::cli::add_align,      heddle::cli::add_fill,       heddle::cli::add_classify,
    heddle::cli::add_embed,      heddle::cli::add_forward,    heddle::cli::add_export,
    heddle::cli::add_info,       heddle::cli::add_analyze,    heddle::cli::add_positions,
    heddle::cli::add_attention,  heddle::cli::add_explain,    heddle::cli::add_compare,
    heddle::cli::add_phrasebook, heddle::cli::add_demo,       heddle::cli::add_bench,
    heddle::cli::add_manual,     heddle::cli::add_completion,
};

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<std::string> flag_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::string did_you_mean(const std::string& name, const std::vector<std::string>& known) {
  const std::string nearest = heddle::nearest_name(name, known);
  return nearest.empty() ? "" : " Did you mean '" + nearest + "'?";
}

/// The command that the arguments name, with its words: "tokenizer train".
struct Command {
  const CLI::App* app;
  std::string words;
  std::string help() const {
    return " See heddle " + words + (words.empty() ? "" : " ") + "--help";
  }
};

/// Follows the arguments into the commands. A word that should be a command and is none is an error
/// here, because CLI11 would only say that a command is missing.
Command find_command(const CLI::App& app, const std::vector<std::string>& arguments) {
  Command command{&app, ""};
  for (const std::string& word : arguments) {
    if (word.starts_with("--profile=")) continue;  // may stand before the command
    const std::vector<const CLI::App*> inner = commands_of(*command.app);
    if (inner.empty() || word.empty() || word[0] == '-') break;
    std::vector<std::string> names;
    for (const CLI::App* each : inner) names.push_back(each->get_name());
    const auto found = std::find(names.begin(), names.end(), word);
    if (found == names.end()) {
      heddle::fail(ErrorKind::usage, "unknown command '{}{}{}'.{}{}", command.words,
                   command.words.empty() ? "" : " ", word, did_you_mean(word, names),
                   command.help());
    }
    command.app = inner[static_cast<size_t>(found - names.begin())];
    command.words += (command.words.empty() ? "" : " ") + word;
  }
  return command;
}

/// What CLI11 found wrong, in our form: what was seen, the nearest flag, where to read on.
std::string explain(const CLI::ParseError& error, const Command& command) {
  const std::string who = command.words + (command.words.empty() ? "" : ": ");
  // An unknown flag comes first: it is often why something else seems to be missing.
  const std::vector<std::string> left_over = command.app->remaining();
  for (const std::string& extra : left_over) {
    const std::string flag = extra.substr(0, extra.find('='));
    if (flag.size() < 2 || flag[0] != '-' || std::isdigit(flag[1])) continue;
    return fmt::format("{}unknown flag '{}'.{}{}", who, flag,
                       did_you_mean(flag, flag_names(*command.app)), command.help());
  }
  if (!left_over.empty()) {
    return fmt::format("{}unexpected argument '{}'.{}", who, left_over.front(), command.help());
  }
  if (!commands_of(*command.app).empty() && dynamic_cast<const CLI::RequiredError*>(&error)) {
    return fmt::format("{}a command is needed.{}", who, command.help());
  }
  return fmt::format("{}{}.{}", who, error.what(), command.help());
}

/// Results go to stdout: a full disk must not pass for success.
void finish_output() {
  errno = 0;
  const bool stream_failed = !std::cout.flush();
  if (std::fflush(stdout) == 0 && !std::ferror(stdout) && !stream_failed) return;
  const int reason = errno;
  heddle::fail(ErrorKind::system, "cannot write the results to stdout: {}",
               reason ? std::strerror(reason) : "a write failed");
}

int run(const std::vector<std::string>& words) {
  const std::vector<std::string> arguments = heddle::cli::join_profile_flag(words);
  CLI::App app("Train, evaluate and use the Transformer family, natively.", "heddle");
  app.set_version_flag("--version", std::string("heddle ") + heddle::version(),
                       "print the version and exit");
  app.require_subcommand(1);
  app.failure_message(CLI::FailureMessage::simple);
  for (AddCommand add : kCommands) add(app);
  std::string trace;
  heddle::cli::add_profile_flag(app, trace);
  app.parse_complete_callback([&trace] {  // all flags are right; the command has not begun
    if (!trace.empty()) heddle::cli::start_profile_session(trace);
  });
  const heddle::cli::ProfileAtExit profile;

  const Command command = find_command(app, arguments);
  try {
    // CLI11 takes the arguments last to first.
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      app.exit(error);  // prints the help or the version that was asked for
    } else {
      throw heddle::Error(ErrorKind::usage, explain(error, command));
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
  try {
    return run({argv + 1, argv + argc});
  } catch (const heddle::Error& error) {
    return report(error.kind(), error.what());
  } catch (const std::bad_alloc&) {
    return report(ErrorKind::system, "out of memory");
  } catch (const std::system_error& error) {  // as fmt throws it where a write fails
    return report(ErrorKind::system, error.what());
  } catch (const std::exception& error) {
    return report(ErrorKind::internal,
                  fmt::format("this is a bug in heddle: {}", error.what()).c_str());
  } catch (...) {
    return report(ErrorKind::internal, "this is a bug in heddle: an unknown exception");
  }
}
