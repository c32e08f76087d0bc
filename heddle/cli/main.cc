// The program: its commands, what is said of a command line that does not fit, and how each way of
// ending becomes an exit code.
#include <fcntl.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <iostream>
#include <new>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "heddle/base/error.h"
#include "heddle/base/files/mmap.h"
#include "heddle/base/log.h"
#include "heddle/base/names.h"
#include "heddle/base/signals.h"
#include "heddle/cli/commands.h"
#include "heddle/cli/flags.h"
#include "heddle/cli/lines.h"
#include "heddle/cli/outputs.h"
#include "heddle/cli/profile.h"

namespace heddle::cli {
namespace {

// --- a command line that does not fit: what was seen, what was needed, what to try ---------------

// The command that the arguments name, with its words: "tokenizer train".
struct Command {
  const CLI::App* app;
  std::string words;
  std::string help() const {
    return " See heddle " + words + (words.empty() ? "" : " ") + "--help";
  }
};

// What a flag was called before, or is called by other programs, and what it may be here.
struct OtherName {
  const char* name;
  std::vector<const char*> here;
};

const std::vector<OtherName>& other_names() {
  static const std::vector<OtherName> names = {
      {"-o", {"--page"}},
      {"--output", {"--out", "--page"}},
      {"--out", {"--output", "--page"}},
      {"--output-dir", {"--out", "--output"}},
      {"--html", {"--page"}},
      {"--steps", {"--page", "--max-updates"}},
      {"--max-steps", {"--max-updates"}},
      {"--iterations", {"--max-updates"}},
      {"--epochs", {"--max-updates"}},
      {"--hyp-out", {"--output"}},
      {"--align-out", {"--output"}},
      {"--outputs", {"--output"}},
      {"--inputs", {"--input"}},
      {"--source", {"--text", "--src"}},
      {"--sentence", {"--text"}},
      {"--target", {"--ref", "--tgt"}},
      {"--reference", {"--ref"}},
      {"--text", {"--data", "--prompt"}},
      {"--prompt", {"--text"}},
      {"--file", {"--data", "--src"}},
      {"--truncate-prompt", {"--truncate"}},
      {"--lower-case", {"--lowercase"}},
      {"--num-beams", {"--beam"}},
      {"--beams", {"--beam"}},
      {"--beam-size", {"--beam"}},
      {"--temp", {"--temperature"}},
      {"--max-tokens", {"--max-new-tokens", "--max-length"}},
      {"--max-length", {"--max-new-tokens"}},
      {"--max-new-tokens", {"--max-length"}},
      {"--n-predict", {"--max-new-tokens"}},
      {"--lr", {"--learning-rate"}},
      {"--warmup", {"--warmup-updates"}},
      {"--batch", {"--batch-size"}},
      {"--dtype", {"--precision"}},
      {"--precision", {"--dtype"}},
      {"--model", {"--model-type", "model"}},
  };
  return names;
}

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
  const std::string nearest = nearest_name(name, known);
  return nearest.empty() ? "" : " Did you mean '" + nearest + "'?";
}

// What was given to a flag, "" for nothing.
std::string value_of(const std::string& flag, const std::vector<std::string>& arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].starts_with(flag + "=")) return arguments[i].substr(flag.size() + 1);
    const bool has_next = i + 1 < arguments.size() && !arguments[i + 1].starts_with("-");
    if (arguments[i] == flag) return has_next ? arguments[i + 1] : "";
  }
  return "";
}

bool is_output(const std::string& flag) {
  return flag == "-o" || flag == "--out" || flag == "--output";
}

// "unknown flag '--hyp-out'; it is --output here."
std::string unknown_flag(const std::string& flag, const std::string& value, const CLI::App& app) {
  const auto found = std::ranges::find(other_names(), flag, &OtherName::name);
  if (found != other_names().end()) {
    for (const std::string here : found->here) {
      if (app.get_option_no_throw(here) == nullptr) continue;
      // Answers are no page, which such a flag would make of them.
      if (here == "--page" && is_output(flag) && !is_page_name(value)) continue;
      if (here[0] == '-') return fmt::format("unknown flag '{}'; it is {} here.", flag, here);
      return fmt::format("unknown flag '{}'; the {} stands without a flag.", flag, here);
    }
  }
  if (is_output(flag)) {
    return fmt::format("unknown flag '{}'; results go to the standard output: add '> {}'.", flag,
                       value.empty() ? "FILE" : value);
  }
  return fmt::format("unknown flag '{}'.{}", flag, did_you_mean(flag, flag_names(app)));
}

bool is_image(const std::string& file) {
  return file.ends_with(".png") || file.ends_with(".jpg") || file.ends_with(".jpeg");
}

// "'fr.txt'": a word too many.
std::string left_over(const std::string& word, const CLI::App& app) {
  std::string hint;
  const CLI::Option* const image = app.get_option_no_throw("image");
  const bool takes_one =
      image != nullptr && image->get_positional() && app.get_option_no_throw("second") == nullptr;
  if (is_image(word) && takes_one) {
    hint = " Images are taken one at a time.";
  } else if (app.get_option_no_throw("--text") != nullptr) {
    hint = fmt::format(" A text is given as --text '{}'.", word);
  } else if (app.get_option_no_throw("--prompt") != nullptr) {
    hint = fmt::format(" A prompt is given as --prompt '{}'.", word);
  }
  return fmt::format("unexpected argument '{}'.{}", word, hint);
}

// What a value of the option must be, in words; "" if its type does not say.
std::string needed(const CLI::App& app, const std::string& name) {
  const CLI::Option* option = app.get_option_no_throw(name);
  if (option == nullptr) return "";
  const std::string type = option->get_type_name();
  const bool is_whole = type.starts_with("INT") || type.starts_with("UINT");
  if (!is_whole && !type.starts_with("FLOAT")) return "";
  const std::string number = is_whole ? "a whole number" : "a number";
  if (type.ends_with(":POSITIVE")) return number + " above 0";
  if (type.ends_with(":NONNEGATIVE") || type.starts_with("UINT")) return number + " of at least 0";
  return number;
}

// CLI11's words for a value that is wrong: "Could not convert: NAME = VALUE", "NAME: Value VALUE
// not in range 0.000000 to 1797..", "NAME: VALUE not in {a,b}"; in ours.
std::string wrong_value(const std::string& text, const CLI::App& app) {
  const auto cut = [](const std::string& whole, const char* begin, const char* end) {
    const std::string first = begin;
    if (!whole.starts_with(first)) return std::string();
    const size_t at = whole.find(end, first.size());
    return at == whole.npos ? std::string() : whole.substr(first.size(), at - first.size());
  };
  if (const std::string name = cut(text, "Could not convert: ", " = "); !name.empty()) {
    const std::string what = needed(app, name), value = text.substr(text.find(" = ") + 3);
    return what.empty() ? text : fmt::format("{} is '{}'; {} is needed", name, value, what);
  }
  const std::string name = text.substr(0, text.find(": "));
  if (name.size() == text.size()) return text;
  const std::string rest = text.substr(name.size() + 2);
  if (const std::string value = cut(rest, "", " is too large"); !value.empty()) {
    return fmt::format("{} is '{}', which is too large a number", name, value);
  }
  if (rest == "is empty") return fmt::format("{} is ''; it must not be empty", name);
  if (const std::string value = cut(rest, "Value ", " not in range"); !value.empty()) {
    const std::string what = needed(app, name);
    return what.empty() ? text : fmt::format("{} is '{}'; {} is needed", name, value, what);
  }
  if (const std::string value = cut(rest, "", " not in {"); !value.empty()) {
    std::string names = rest.substr(value.size() + 9, rest.size() - value.size() - 10);
    for (size_t at = 0; (at = names.find(',', at)) != names.npos; at += 2) {
      names.insert(at + 1, " ");
    }
    return fmt::format("{} is '{}'; it must be one of {}", name, value, names);
  }
  return text;
}

// Follows the arguments into the commands. Errors: usage for a word that should be a command and is
// none, with the nearest: CLI11 would only say that a command is missing.
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
      fail(ErrorKind::usage, "unknown command '{}{}{}'.{}{}", command.words,
           command.words.empty() ? "" : " ", word, did_you_mean(word, names), command.help());
    }
    command.app = inner[static_cast<size_t>(found - names.begin())];
    command.words += (command.words.empty() ? "" : " ") + word;
  }
  return command;
}

// What CLI11 found wrong of the arguments, in our form: what was seen, what it is called here,
// where to read on.
std::string explain_usage(const CLI::ParseError& error, const Command& command,
                          const std::vector<std::string>& arguments) {
  const std::string who = command.words + (command.words.empty() ? "" : ": ");
  // An unknown flag comes first: it is often why something else seems to be missing.
  std::vector<std::string> words = command.app->remaining();
  if (command.app->get_prefix_command()) words.clear();  // of another command
  for (const std::string& extra : words) {
    const std::string flag = extra.substr(0, extra.find('='));
    if (flag.size() < 2 || flag[0] != '-' || std::isdigit(static_cast<unsigned char>(flag[1])))
      continue;
    return who + unknown_flag(flag, value_of(flag, arguments), *command.app) + command.help();
  }
  if (!words.empty()) return who + left_over(words.front(), *command.app) + command.help();
  if (!commands_of(*command.app).empty() && dynamic_cast<const CLI::RequiredError*>(&error)) {
    return who + "a command is needed." + command.help();
  }
  return who + wrong_value(error.what(), *command.app) + "." + command.help();
}

// --- the program ---------------------------------------------------------------------------------

// Adds every command under the heading of its group, in the order of `heddle --help`.
void add_commands(Subcommand& program) {
  const std::pair<const char*, std::vector<void (*)(Subcommand&)>> groups[] = {
      {"Train", {add_train, add_launch, add_tokenizer, add_compare, add_demo}},
      {"Use",
       {add_translate, add_generate, add_fill, add_classify, add_detect, add_caption, add_embed,
        add_serve, add_forward}},
      {"Measure", {add_eval, add_score, add_align, add_bench, add_load}},
      {"Look inside", {add_info, add_analyze, add_attention, add_explain, add_positions}},
      {"Data and files",
       {add_augment, add_phrasebook, add_shapes, add_export, add_quantize, add_shortlist}},
      {"Tools", {add_completion, add_manual}},
  };
  for (const auto& [heading, commands] : groups) {
    for (const auto add : commands) {
      add(program);
      program.get_subcommands().back().app().group(heading);
    }
  }
}

// `heddle help train` is `heddle train --help`.
std::vector<std::string> help_first(std::vector<std::string> arguments) {
  if (arguments.empty() || arguments[0] != "help") return arguments;
  arguments.erase(arguments.begin());
  arguments.emplace_back("--help");
  return arguments;
}

// Results go to stdout: a full disk must not pass for success.
void finish_output() {
  errno = 0;
  const bool stream_failed = !std::cout.flush();
  if (std::fflush(stdout) == 0 && !std::ferror(stdout) && !stream_failed) return;
  fail_results(errno);
}

int run(const std::vector<std::string>& words) {
  std::vector<std::string> arguments = help_first(join_profile_flag(words));
  CLI::App app("Train, evaluate and use the Transformer family, natively.", "heddle");
  app.set_version_flag("-v,-V,--version", std::string("heddle ") + version(),
                       "print the version and exit");
  app.require_subcommand(1);
  app.failure_message(CLI::FailureMessage::simple);
  app.footer("`heddle COMMAND --help` shows a command's flags; `heddle help COMMAND` does too.");
  Subcommand program(app);
  add_commands(program);
  std::string trace;
  add_profile_flag(program, trace);
  app.parse_complete_callback([&] {  // all flags are right; the command has not begun
    check_outputs(program);
    if (!trace.empty()) start_profile_session(trace);
  });
  const ProfileAtExit profile;

  const Command command = find_command(app, arguments);
  if (command.app->get_prefix_command()) arguments = Subcommand::hide_dashes(arguments);
  try {
    // CLI11 takes the arguments last to first.
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      app.exit(error);  // prints the help or the version that was asked for
    } else {
      throw Error(ErrorKind::usage, explain_usage(error, command, arguments));
    }
  }
  finish_output();
  finish_profile_session();
  const int signal = pending_signal();
  return signal ? 128 + signal : 0;
}

int report(ErrorKind kind, const char* message) {
  std::fflush(stdout);  // the results that were reached come before the message
  std::string text = printable(message);
  constexpr size_t kLongest = 8192;  // a name in a damaged file can be megabytes long
  if (text.size() > kLongest) text = text.substr(0, kLongest) + " ...";
  fmt::print(stderr, "heddle: {}\n", text);
  return static_cast<int>(kind);
}

// A write to the standard output that failed, as it is said everywhere.
int report_output(int reason) {
  try {
    fail_results(reason);
  } catch (const Error& error) {
    return report(error.kind(), error.what());
  }
}

// The three standard files exist from here on, so that no file of ours takes their number. One
// that was closed fails when it is used, rather than swallowing results.
void claim_standard_files() {
  for (int number = 0; number <= 2; ++number) {
    if (fcntl(number, F_GETFD) < 0) open("/dev/null", number == 0 ? O_WRONLY : O_RDONLY);
  }
}

}  // namespace
}  // namespace heddle::cli

int main(int argc, char** argv) {
  using namespace heddle;
  using namespace heddle::cli;
  signal(SIGPIPE, SIG_DFL);  // a closed pipe ends the program quietly, whatever the parent set
  signal(SIGXFSZ, SIG_IGN);  // a file at its greatest size (ulimit -f) is an error of write()
  claim_standard_files();
  explain_cut_files();
  guard_terminal();
  name_fields_by(flag_of);
  try {
    return run({argv + 1, argv + argc});
  } catch (const Error& error) {
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
