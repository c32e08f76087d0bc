// Commands and their flags, as the files of commands declare them. CLI11 stands behind this header:
// its own takes some five seconds of compiler time in every file that includes it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace heddle::cli {

/// A flag or an argument of a command; it lives as long as the program's command line. All that
/// sets something returns the flag itself, so that calls follow each other.
class Option {
 public:
  Option() = default;
  explicit Option(CLI::Option* option) : option_(option) {}
  explicit operator bool() const { return option_ != nullptr; }

  const Option& required(bool is_required = true) const;
  /// The value that the variable has now is what the help calls the default.
  const Option& with_default() const;
  /// What the help says is taken: "FILE.html".
  const Option& type_name(const std::string& name) const;
  const Option& option_text(const std::string& text) const;
  const Option& group(const std::string& name) const;
  /// Several values in one argument: "1,2".
  const Option& delimiter(char between) const;
  const Option& allow_extra_args(bool is_allowed) const;
  const Option& needs(const Option& other) const;
  const Option& excludes(const Option& other) const;
  /// Errors when it is read: usage for any other value.
  const Option& one_of(std::vector<std::string> values) const;
  const Option& positive() const;
  const Option& not_negative() const;
  /// A text that may be "", which all others refuse: it is a value that the shell forgot.
  const Option& may_be_empty() const;
  /// Its values are files that the command writes; see check_outputs().
  const Option& writes_file() const;

  /// How often it was given.
  size_t count() const;
  /// The values that were given, as texts.
  std::vector<std::string> values() const;
  std::string name() const;
  std::string group_name() const;
  /// Whether writes_file() was said of it.
  bool is_output() const;
  /// Whether its values are texts, as names of files are, and no numbers.
  bool is_text() const;

 private:
  CLI::Option* option_ = nullptr;
};

/// The program or one of its commands; a copy is the same command.
class Subcommand {
 public:
  Subcommand() = default;
  explicit Subcommand(CLI::App& app) : app_(&app) {}

  /// A command of this one.
  Subcommand add_subcommand(const std::string& name, const std::string& help);
  /// One that runs with its flags once all are right.
  template <class Flags>
  std::pair<Subcommand, Flags&> add_command(const std::string& name, const std::string& help,
                                            std::function<void(Flags&)> run) {
    auto flags = std::make_shared<Flags>();
    Subcommand command = add_subcommand(name, help);
    command.callback([flags, run = std::move(run)] { run(*flags); });
    return {command, *flags};
  }
  /// A command must follow.
  void require_subcommand();
  /// What is done once all flags are right.
  void callback(std::function<void()> f);
  /// What is done before the flags after it are read.
  void before_parsing(std::function<void()> f);

  /// A flag with a value, or an argument where `name` has no dash. T: std::string, int,
  /// int64_t, uint64_t, double, optional or vector of some (command_line.cc lists them).
  template <class T>
  Option add_option(const std::string& name, T& value, const std::string& help = "");
  /// One whose help calls the value that it has now the default.
  template <class T>
  Option add_setting(const std::string& name, T& value, const std::string& help) {
    return add_option(name, value, help).with_default();
  }
  Option add_option_function(const std::string& name, std::function<void(const std::string&)> f,
                             const std::string& help);
  /// A flag without a value.
  Option add_flag(const std::string& name, bool& is_given, const std::string& help);
  /// A flag that may stand without its value.
  Option add_flag(const std::string& name, std::string& value, const std::string& help);
  /// A flag that is read and changes nothing.
  Option add_flag(const std::string& name, const std::string& help);

  /// All words from the first on that is no flag of this command go to `words`: another command.
  /// `--` may stand before it, and is one of them.
  void take_rest(std::vector<std::string>& words);
  /// The words of its command line, which CLI11 would end at `--`.
  static std::vector<std::string> hide_dashes(std::vector<std::string> words);

  /// The heading in the help of all flags that are added from here on; at first "Options".
  void begin_group(const std::string& name);

  /// By name, "--src". Errors: internal if there is none.
  Option get_option(const std::string& name) const;
  std::vector<Option> get_options() const;
  Subcommand get_subcommand(const std::string& name) const;
  std::vector<Subcommand> get_subcommands() const;
  /// Those of them that the command line has.
  std::vector<Subcommand> given_subcommands() const;
  /// What --version prints.
  std::string version() const;

  /// CLI11's own, for the files that describe the whole program.
  CLI::App& app() const { return *app_; }

 private:
  CLI::App* app_ = nullptr;
};

}  // namespace heddle::cli
