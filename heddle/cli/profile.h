// --profile on any command: the flag, and a profile from the start of the command to its end.
#pragma once

#include <string>
#include <vector>

#include "heddle/cli/command_line.h"

namespace heddle::cli {

/// Adds --profile to the program and to each of its commands; `path` gets the name of the trace
/// file, and stays "" without the flag.
void add_profile_flag(Subcommand& app, std::string& path);

/// The arguments with --profile, or --profile FILE.json, as one word "--profile=FILE". A name that
/// does not end in .json must be given in that form, so that no other argument is taken for it.
std::vector<std::string> join_profile_flag(const std::vector<std::string>& arguments);

/// The trace file of --profile without a name.
inline constexpr const char* kDefaultTrace = "heddle-trace.json";

/// Starts to record. From here on SIGINT and SIGTERM write the profile
/// before they end the program, unless the command handles them (install_signal_handlers).
/// Errors: data or system if the file cannot be written.
void start_profile_session(const std::string& trace_path);

/// Writes the tables to stderr and the trace to its file; nothing if no session is under way.
/// Errors: system if the trace cannot be written.
void finish_profile_session();

/// finish_profile_session() at the end of a scope, however it is left; its errors are only said.
class ProfileAtExit {
 public:
  ProfileAtExit() = default;
  ~ProfileAtExit();
  ProfileAtExit(const ProfileAtExit&) = delete;
  ProfileAtExit& operator=(const ProfileAtExit&) = delete;
};

}  // namespace heddle::cli
