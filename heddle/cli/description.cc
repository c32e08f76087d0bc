// heddle manual and heddle completion: what is written from the program's commands and flags, which
// are read out of CLI11's tables.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <ranges>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/cli/commands.h"
#include "heddle/text/strings/strings.h"

namespace heddle::cli {
namespace {

struct FlagDescription {
  std::vector<std::string> names = {};  // "-h", "--help"; empty: an argument by its place
  std::string value = {};               // what it takes: "INT", "f32|bf16", "model"; empty: nothing
  bool is_value_optional = false;       // the flag may stand without its value
  std::vector<std::string> choices = {};  // the only values, where they are few
  std::string help = {};
  std::string default_value = {};  // as the flag would give it; empty: none is shown
  std::string group = {};          // heading in the help
};

struct CommandDescription {
  std::vector<std::string> words = {};  // "heddle", "tokenizer", "train"
  std::string help = {};
  std::vector<FlagDescription> flags = {};
  std::vector<std::pair<std::string, std::string>> commands = {};  // its own: last word, help
};

// The words of "a|b|c" and of "TEXT:{a,b,c}"; none of anything else.
std::vector<std::string> choices_of(const std::string& type) {
  std::string list = type;
  char between = '|';
  if (const size_t open = type.find('{'); open != std::string::npos && type.ends_with('}')) {
    list = type.substr(open + 1, type.size() - open - 2);
    between = ',';
  }
  if (list.find(between) == std::string::npos) return {};
  std::vector<std::string> choices;
  std::istringstream stream(list);
  for (std::string word; std::getline(stream, word, between);) choices.push_back(word);
  return choices;
}

FlagDescription describe(const CLI::Option& option) {
  FlagDescription f{.help = option.get_description(),
                    .default_value = option.get_default_str(),
                    .group = option.get_group()};
  for (const std::string& name : option.get_snames()) f.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) f.names.push_back("--" + name);
  const std::string& text = option.get_option_text();
  if (f.names.empty()) {
    f.value = option.get_name(true);
  } else if (!text.empty()) {
    f.is_value_optional = text.starts_with('[');
    f.value = f.is_value_optional ? text.substr(1, text.size() - 2) : text;
  } else if (option.get_items_expected_max() > 0) {
    f.value = option.get_type_name();
    f.choices = choices_of(f.value);
    f.value = f.value.substr(0, f.value.find(':'));
  }
  return f;
}

// Adds the command and all inside, itself first.
void describe(const CLI::App& app, std::vector<std::string> words,
              std::vector<CommandDescription>& all) {
  words.push_back(app.get_name());
  CommandDescription command{.words = words, .help = app.get_description()};
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_group().empty()) command.flags.push_back(describe(*option));
  }
  const auto inner = app.get_subcommands([](const CLI::App*) { return true; });
  for (const CLI::App* each : inner) {
    command.commands.emplace_back(each->get_name(), each->get_description());
  }
  all.push_back(std::move(command));
  for (const CLI::App* each : inner) describe(*each, words, all);
}

// The program and its commands.
std::vector<CommandDescription> describe(const Subcommand& program) {
  std::vector<CommandDescription> all;
  describe(program.app(), {}, all);
  return all;
}

// The words with something between: "heddle-tokenizer-train". `from`: the first word that counts.
std::string joined_words(const CommandDescription& command, const char* between, size_t from = 0) {
  return fmt::format("{}", fmt::join(command.words.begin() + static_cast<std::ptrdiff_t>(from),
                                     command.words.end(), between));
}

// --- completion: how shells complete commands, flags and values ---------------------------------

// The command without the program: "tokenizer train", "" of heddle itself.
std::string words_of(const CommandDescription& command) { return joined_words(command, " ", 1); }

// As a word between single quotes, which all three shells read alike.
std::string quoted(const std::string& text) { return "'" + replace_all(text, "'", "'\\''") + "'"; }

// --- bash -----------------------------------------------------------------------------------

std::string bash(const std::vector<CommandDescription>& commands) {
  std::string steps, values, words;
  for (const CommandDescription& command : commands) {
    const std::string here = words_of(command);
    std::vector<std::string> offered;
    for (const auto& [name, help] : command.commands) {
      offered.push_back(name);
      steps += fmt::format("      \"{} {}\") command=\"{}\" ;;\n", here, name,
                           here + (here.empty() ? "" : " ") + name);
    }
    for (const FlagDescription& flag : command.flags) {
      offered.insert(offered.end(), flag.names.begin(), flag.names.end());
      if (flag.choices.empty()) continue;
      for (const std::string& name : flag.names) {
        values += fmt::format("    \"{} {}\") words=\"{}\" ;;\n", here, name,
                              fmt::join(flag.choices, " "));
      }
    }
    words += fmt::format("    \"{}\") words=\"{}\" ;;\n", here, fmt::join(offered, " "));
  }
  return fmt::format(R"(# bash completion of heddle; written by `heddle completion bash`
_heddle() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}}
  local command="" words="" i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case "$command ${{COMP_WORDS[i]}}" in
{}    esac
  done
  case "$command $before" in
{}  esac
  if [[ -z $words && ($word == -* || -z $command || $before == "${{command##* }}") ]]; then
    case "$command" in
{}    esac
    [[ $word == -* ]] || words=" $words" words=${{words// -*/}}
  fi
  while IFS="" read -r i; do COMPREPLY+=("$i"); done < <(compgen -W "$words" -- "$word")
}}
complete -o default -F _heddle heddle
)",
                     steps, values, words);
}

// --- zsh ------------------------------------------------------------------------------------

// What _arguments is told of a flag: '(-h --help)'{-h,--help}'[help]:value:action'.
std::string zsh_flag(const FlagDescription& flag) {
  std::string help = flag.help;
  for (const char* c : {"[", "]", ":"}) help = replace_all(help, c, std::string("\\") + c);
  const std::string value = replace_all(flag.value, ":", "\\:");
  std::string spec;
  if (flag.names.empty()) return quoted(fmt::format(":{}:_files", value));
  if (!flag.value.empty()) {
    spec = flag.choices.empty() ? fmt::format(":{}:_files", value)
                                : fmt::format(":value:({})", fmt::join(flag.choices, " "));
    if (flag.is_value_optional) spec = ":" + spec;
  }
  if (flag.names.size() == 1) return quoted(fmt::format("{}[{}]{}", flag.names[0], help, spec));
  return fmt::format("'({})'{{{}}}{}", fmt::join(flag.names, " "), fmt::join(flag.names, ","),
                     quoted(fmt::format("[{}]{}", help, spec)));
}

std::string zsh_function(const CommandDescription& command) {
  std::string text = fmt::format("_{}() {{\n  local context state line\n  _arguments -C",
                                 joined_words(command, "_"));
  for (const FlagDescription& flag : command.flags) text += " \\\n    " + zsh_flag(flag);
  if (command.commands.empty()) return text + "\n}\n\n";
  text += " \\\n    '1: :->command' \\\n    '*:: :->rest'\n  case $state in\n    command)\n";
  text += "      local -a commands=(";
  for (const auto& [name, help] : command.commands) {
    text += "\n        " + quoted(name + ":" + replace_all(help, ":", "\\:"));
  }
  text += ")\n      _describe command commands ;;\n    rest)\n      case $line[1] in\n";
  for (const auto& [name, help] : command.commands) {
    text += fmt::format("        {0}) _{1}_{0} ;;\n", name, joined_words(command, "_"));
  }
  return text + "      esac ;;\n  esac\n}\n\n";
}

std::string zsh(const std::vector<CommandDescription>& commands) {
  std::string text = "#compdef heddle\n# zsh completion; written by `heddle completion zsh`\n\n";
  for (const CommandDescription& command : commands) text += zsh_function(command);
  return text + "_heddle \"$@\"\n";
}

// --- fish -----------------------------------------------------------------------------------

// True in fish where the words so far name this very command. `parents`: the program's commands
// that have commands of their own; `train` is one of heddle and one of `tokenizer`.
std::string fish_condition(const CommandDescription& command,
                           const std::vector<std::string>& parents) {
  std::string condition;
  for (size_t i = 1; i < command.words.size(); ++i) {
    condition +=
        (i > 1 ? "; and " : "") + fmt::format("__fish_seen_subcommand_from {}", command.words[i]);
  }
  if (command.words.size() == 2 && command.commands.empty() && !parents.empty()) {
    condition += fmt::format("; and not __fish_seen_subcommand_from {}", fmt::join(parents, " "));
  }
  return condition;
}

std::string fish_flag(const FlagDescription& flag, const std::string& condition) {
  std::string text = "complete -c heddle";
  if (!condition.empty()) text += " -n " + quoted(condition);
  for (const std::string& name : flag.names) {
    text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  }
  if (!flag.value.empty() && !flag.is_value_optional) text += " -r";
  if (!flag.choices.empty()) {
    text += " -f -a " + quoted(fmt::format("{}", fmt::join(flag.choices, " ")));
  }
  return text + " -d " + quoted(flag.help) + "\n";
}

std::string fish(const std::vector<CommandDescription>& commands) {
  std::string text = "# fish completion of heddle; written by `heddle completion fish`\n";
  std::vector<std::string> parents;
  for (const CommandDescription& command : commands) {
    const bool is_parent = command.words.size() == 2 && !command.commands.empty();
    if (is_parent) parents.push_back(command.words.back());
  }
  for (const CommandDescription& command : commands) {
    const std::string names = fmt::format("{}", fmt::join(std::views::keys(command.commands), " "));
    const std::string here = fish_condition(command, parents);
    for (const auto& [name, help] : command.commands) {
      const std::string missing = here.empty()
                                      ? "__fish_use_subcommand"
                                      : here + "; and not __fish_seen_subcommand_from " + names;
      text += fmt::format("complete -c heddle -n {} -f -a {} -d {}\n", quoted(missing), name,
                          quoted(help));
    }
    for (const FlagDescription& flag : command.flags) {
      if (!flag.names.empty()) text += fish_flag(flag, here);
    }
  }
  return text;
}

void complete(const Subcommand& program, const std::string& shell) {
  const std::vector<CommandDescription> commands = describe(program);
  if (shell == "bash") {
    fmt::print("{}", bash(commands));
  } else if (shell == "zsh") {
    fmt::print("{}", zsh(commands));
  } else if (shell == "fish") {
    fmt::print("{}", fish(commands));
  } else {
    fail(ErrorKind::usage, "completion: no shell '{}' is known; choose bash, zsh or fish", shell);
  }
}

// --- manual pages --------------------------------------------------------------------------------

// Text as roff takes it: no escape begins by accident, hyphens stay hyphens, and no line begins
// with a request.
std::string roff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (out.empty() && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

std::string page_name(const CommandDescription& command) { return joined_words(command, "-"); }

std::string flag_head(const FlagDescription& flag) {
  if (flag.names.empty()) return fmt::format("\\fI{}\\fR", roff(flag.value));
  std::vector<std::string> names;
  for (const std::string& name : flag.names) names.push_back("\\fB" + roff(name) + "\\fR");
  std::string head = fmt::format("{}", fmt::join(names, ", "));
  if (flag.value.empty()) return head;
  const std::string value = "\\fI" + roff(flag.value) + "\\fR";
  return head + (flag.is_value_optional ? " [" + value + "]" : " " + value);
}

std::string synopsis(const CommandDescription& command) {
  std::string text = "\\fB" + roff(joined_words(command, " ")) + "\\fR";
  if (!command.commands.empty()) return text + " \\fIcommand\\fR [\\fIoptions\\fR]";
  text += " [\\fIoptions\\fR]";
  for (const FlagDescription& flag : command.flags) {
    if (flag.names.empty()) text += " " + flag_head(flag);
  }
  return text;
}

std::string flags_section(const CommandDescription& command) {
  std::string text = ".SH OPTIONS\n", group = "Options";
  for (const FlagDescription& flag : command.flags) {
    if (flag.group != group && flag.group != "Positionals") {
      group = flag.group;
      text += fmt::format(".SS {}\n", roff(group));
    }
    text += fmt::format(".TP\n{}\n{}", flag_head(flag), roff(flag.help));
    if (!flag.default_value.empty()) text += fmt::format(" [{}]", roff(flag.default_value));
    text += "\n";
  }
  return text;
}

constexpr const char* kExitStatus = R"(.SH EXIT STATUS
0 success; 2 a wrong command, flag or field; 3 a file that is not what it should be; 4 tensors whose
sizes do not fit; 5 a device that lacks what is asked; 6 the system (a full disk, no permission, no
memory); 7 other ranks of the run; 70 a bug of heddle; 129, 130 and 143 after SIGHUP, SIGINT and
SIGTERM. Results go to standard output, messages to standard error.
)";

std::string page(const CommandDescription& root, const CommandDescription& command,
                 const std::string& version) {
  std::string title = page_name(command);
  for (char& c : title) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  std::string text = fmt::format(
      ".\\\" Written by heddle manual.\n.TH {} 1 \"\" \"{}\" \"User Commands\"\n.SH NAME\n{} \\- "
      "{}\n.SH SYNOPSIS\n{}\n",
      roff(title), version, roff(page_name(command)), roff(command.help), synopsis(command));
  if (!command.commands.empty()) {
    text += ".SH COMMANDS\n";
    for (const auto& [name, help] : command.commands) {
      text += fmt::format(".TP\n\\fB{}\\fR(1)\n{}\n", roff(page_name(command) + "-" + name),
                          roff(help));
    }
  }
  text += flags_section(command) + kExitStatus;
  if (&command != &root) {
    text += fmt::format(".SH SEE ALSO\n.BR {} (1)\n", roff(page_name(root)));
  }
  return text;
}

void write_manual(const Subcommand& program, const std::string& folder) {
  make_directories(folder);
  const std::vector<CommandDescription> commands = describe(program);
  for (const CommandDescription& command : commands) {
    write_file_atomic(join_path(folder, page_name(command) + ".1"),
                      page(commands[0], command, program.version()));
  }
}

}  // namespace

void add_completion(Subcommand& app) {
  struct Flags {
    std::string shell;
  };
  auto [command, flags] = app.add_command<Flags>(
      "completion", "Print what lets a shell complete heddle's commands, flags and values",
      [&app](Flags& f) {
        add_train_settings(app);
        complete(app, f.shell);
      });
  command.add_option("shell", flags.shell, "bash, zsh or fish").required();
}

void add_manual(Subcommand& app) {
  struct Flags {
    std::string folder;
  };
  auto [command, flags] =
      app.add_command<Flags>("manual", "Write the manual pages, one a command", [&app](Flags& f) {
        add_train_settings(app);
        write_manual(app, f.folder);
      });
  command.add_option("-o,--out", flags.folder, "folder of the pages heddle.1, heddle-train.1, ..")
      .required();
}

}  // namespace heddle::cli
