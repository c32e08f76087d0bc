// Commands that ask a server, `heddle serve`, in the place of a model of their own.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "heddle/base/json/json.h"
#include "heddle/cli/command_line.h"
#include "heddle/cli/lines.h"
#include "heddle/infer/search/search_config.h"

namespace heddle::cli {

struct ServerFlags {
  std::string url;  ///< "": none is asked
  std::string key_file;
  double longest_wait = 120;
};

/// Adds --server, --key-file and --wait; the model, which a command needs else, is then the name of
/// one of the server's.
void add_server_flags(Subcommand& command, ServerFlags& flags);

/// Whether a server is asked. Errors: usage, naming the flag, if one is given that it is not asked;
/// if neither a server nor a model is named.
bool asks_server(const Subcommand& command, const ServerFlags& flags,
                 std::initializer_list<const char*> asked);

struct RemoteTranslation {
  ServerFlags server;
  Json body;  ///< of each request, but its texts
  bool json = false, shows_several = false;
  std::string prefix = {};       ///< of all lines
  std::string prefix_file = {};  ///< line i has that of line i
  LineFlags lines;
};
/// What `heddle translate` writes.
void translate_remotely(const RemoteTranslation& asked);

struct RemoteGeneration {
  ServerFlags server;
  std::string model;
  SearchConfig search;
  bool draws = false;
  int64_t samples = 1;  ///< of each prompt
  std::vector<std::string> stops = {};
  bool echo = false, is_chat = false;     ///< a prompt is then what conversation_messages() takes
  std::string system = {};                ///< of a chat
  Json schema = {};                       ///< of the JSON that is written; null: any text
  std::vector<std::string> prompts = {};  ///< none: lines
  LineFlags lines;
};
/// What `heddle generate` writes. Errors: usage for the echo of a chat, whose template is the
/// server's, and where draws would not be those of the model here.
void generate_remotely(const RemoteGeneration& asked);

}  // namespace heddle::cli
