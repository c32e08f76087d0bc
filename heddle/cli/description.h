// The program's commands and flags as plain data, for what is written from them: manual pages and
// the shells' completion.
#pragma once

#include <string>
#include <vector>

#include "heddle/cli/command_line.h"

namespace heddle::cli {

struct FlagDescription {
  std::vector<std::string> names = {};  ///< "-h", "--help"; empty: an argument by its place
  std::string value = {};          ///< what it takes: "INT", "f32|bf16", "model"; empty: nothing
  bool is_value_optional = false;  ///< the flag may stand without its value
  std::vector<std::string> choices = {};  ///< the only values, where they are few
  std::string help = {};
  std::string default_value = {};  ///< as the flag would give it; empty: none is shown
  std::string group = {};          ///< heading in the help
};

struct CommandDescription {
  std::vector<std::string> words = {};  ///< "heddle", "tokenizer", "train"
  std::string help = {};
  std::vector<FlagDescription> flags = {};
  std::vector<CommandDescription> commands = {};
};

/// The program or one of its commands, with all inside.
CommandDescription describe(const Subcommand& program);

/// The command and all inside, itself first.
std::vector<const CommandDescription*> all_commands(const CommandDescription& root);

/// The words with something between: "heddle-tokenizer-train". `from`: the first word that counts.
std::string joined_words(const CommandDescription& command, const char* between, size_t from = 0);

}  // namespace heddle::cli
