// heddle manual: the program's help as manual pages.

#include <memory>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/cli/commands.h"
#include "heddle/cli/description.h"

namespace heddle::cli {
namespace {

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
memory); 70 a bug of heddle; 130 and 143 after SIGINT and SIGTERM. Results go to standard output,
messages to standard error.
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
    for (const CommandDescription& inner : command.commands) {
      text += fmt::format(".TP\n\\fB{}\\fR(1)\n{}\n", roff(page_name(inner)), roff(inner.help));
    }
  }
  text += flags_section(command) + kExitStatus;
  if (&command != &root) {
    text += fmt::format(".SH SEE ALSO\n.BR {} (1)\n", roff(page_name(root)));
  }
  return text;
}

void run(const Subcommand& program, const std::string& folder) {
  make_directories(folder);
  const CommandDescription root = describe(program);
  for (const CommandDescription* command : all_commands(root)) {
    write_file_atomic(join_path(folder, page_name(*command) + ".1"),
                      page(root, *command, program.version()));
  }
}

}  // namespace

void add_manual(Subcommand& app) {
  auto folder = std::make_shared<std::string>();
  Subcommand command = app.add_subcommand("manual", "Write the manual pages, one a command");
  command->add_option("-o,--out", *folder, "folder of the pages heddle.1, heddle-train.1, ..")
      ->required();
  command->callback([folder, &app] {
    add_train_settings(app);
    run(app, *folder);
  });
}

}  // namespace heddle::cli
