// What is said of a command line that does not fit: what was seen, what was needed, what to try.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace heddle::cli {

/// The command that the arguments name, with its words: "tokenizer train".
struct Command {
  const CLI::App* app;
  std::string words;
  std::string help() const {
    return " See heddle " + words + (words.empty() ? "" : " ") + "--help";
  }
};

/// Follows the arguments into the commands. Errors: usage for a word that should be a command and
/// is none, with the nearest.
Command find_command(const CLI::App& app, const std::vector<std::string>& arguments);

/// What CLI11 found wrong of the arguments, in our form: what was seen, what it is called here,
/// where to read on.
std::string explain_usage(const CLI::ParseError& error, const Command& command,
                          const std::vector<std::string>& arguments);

}  // namespace heddle::cli
