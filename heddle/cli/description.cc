// Reads commands and flags out of CLI11's tables.
#include "heddle/cli/description.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <sstream>

namespace heddle::cli {
namespace {

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

void describe(const CLI::App& app, std::vector<std::string> words, CommandDescription& into) {
  words.push_back(app.get_name());
  into.words = words;
  into.help = app.get_description();
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_group().empty()) into.flags.push_back(describe(*option));
  }
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    describe(*command, words, into.commands.emplace_back());
  }
}

void collect(const CommandDescription& command, std::vector<const CommandDescription*>& all) {
  all.push_back(&command);
  for (const CommandDescription& inner : command.commands) collect(inner, all);
}

}  // namespace

CommandDescription describe(const Subcommand& program) {
  CommandDescription description;
  describe(program.app(), {}, description);
  return description;
}

std::vector<const CommandDescription*> all_commands(const CommandDescription& root) {
  std::vector<const CommandDescription*> all;
  collect(root, all);
  return all;
}

std::string joined_words(const CommandDescription& command, const char* between, size_t from) {
  return fmt::format("{}", fmt::join(command.words.begin() + static_cast<std::ptrdiff_t>(from),
                                     command.words.end(), between));
}

}  // namespace heddle::cli
