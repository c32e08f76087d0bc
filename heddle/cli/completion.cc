// heddle completion: how bash, zsh and fish complete heddle's commands, flags and values.

#include <memory>

#include "heddle/base/error.h"
#include "heddle/cli/commands.h"
#include "heddle/cli/description.h"
#include "heddle/text/strings/strings.h"

namespace heddle::cli {
namespace {

// The command without the program: "tokenizer train", "" of heddle itself.
std::string words_of(const CommandDescription& command) { return joined_words(command, " ", 1); }

std::vector<std::string> names_of(const std::vector<CommandDescription>& commands) {
  std::vector<std::string> names;
  for (const CommandDescription& inner : commands) names.push_back(inner.words.back());
  return names;
}

// As a word between single quotes, which all three shells read alike.
std::string quoted(const std::string& text) { return "'" + replace_all(text, "'", "'\\''") + "'"; }

// --- bash -----------------------------------------------------------------------------------

std::string bash(const CommandDescription& root) {
  std::string steps, values, words;
  for (const CommandDescription* command : all_commands(root)) {
    const std::string here = words_of(*command);
    std::vector<std::string> offered = names_of(command->commands);
    for (const std::string& name : offered) {
      steps += fmt::format("      \"{} {}\") command=\"{}\" ;;\n", here, name,
                           here + (here.empty() ? "" : " ") + name);
    }
    for (const FlagDescription& flag : command->flags) {
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
  for (const CommandDescription& inner : command.commands) {
    text += "\n        " + quoted(inner.words.back() + ":" + replace_all(inner.help, ":", "\\:"));
  }
  text += ")\n      _describe command commands ;;\n    rest)\n      case $line[1] in\n";
  for (const CommandDescription& inner : command.commands) {
    text += fmt::format("        {}) _{} ;;\n", inner.words.back(), joined_words(inner, "_"));
  }
  return text + "      esac ;;\n  esac\n}\n\n";
}

std::string zsh(const CommandDescription& root) {
  std::string text = "#compdef heddle\n# zsh completion; written by `heddle completion zsh`\n\n";
  for (const CommandDescription* command : all_commands(root)) text += zsh_function(*command);
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

std::string fish(const CommandDescription& root) {
  std::string text = "# fish completion of heddle; written by `heddle completion fish`\n";
  std::vector<std::string> parents;
  for (const CommandDescription& command : root.commands) {
    if (!command.commands.empty()) parents.push_back(command.words.back());
  }
  for (const CommandDescription* command : all_commands(root)) {
    const std::string names = fmt::format("{}", fmt::join(names_of(command->commands), " "));
    const std::string here = fish_condition(*command, parents);
    for (const CommandDescription& inner : command->commands) {
      const std::string missing = here.empty()
                                      ? "__fish_use_subcommand"
                                      : here + "; and not __fish_seen_subcommand_from " + names;
      text += fmt::format("complete -c heddle -n {} -f -a {} -d {}\n", quoted(missing),
                          inner.words.back(), quoted(inner.help));
    }
    for (const FlagDescription& flag : command->flags) {
      if (!flag.names.empty()) text += fish_flag(flag, here);
    }
  }
  return text;
}

void run(const Subcommand& program, const std::string& shell) {
  const CommandDescription root = describe(program);
  if (shell == "bash") {
    fmt::print("{}", bash(root));
  } else if (shell == "zsh") {
    fmt::print("{}", zsh(root));
  } else if (shell == "fish") {
    fmt::print("{}", fish(root));
  } else {
    fail(ErrorKind::usage, "completion: no shell '{}' is known; choose bash, zsh or fish", shell);
  }
}

}  // namespace

void add_completion(Subcommand& app) {
  auto shell = std::make_shared<std::string>();
  Subcommand command = app.add_subcommand(
      "completion", "Print what lets a shell complete heddle's commands, flags and values");
  command->add_option("shell", *shell, "bash, zsh or fish")->required();
  command->callback([shell, &app] {
    add_train_settings(app);
    run(app, *shell);
  });
}

}  // namespace heddle::cli
