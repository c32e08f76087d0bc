// The flags by which a process is told of which group of ranks it is one.
#pragma once

#include "heddle/cli/command_line.h"
#include "heddle/dist/start.h"

namespace heddle::cli {

/// The heading of these flags.
inline constexpr const char* kRankFlags = "Ranks";

/// Adds --rendezvous, --rank, --ranks, --any-cpu and the deadlines, under a heading of their own.
/// What is not given is read from the environment, see dist::make_group().
void add_group_flags(Subcommand& command, dist::GroupOptions& options);
/// --wire, of a command whose ranks sum gradients.
void add_wire_flag(Subcommand& command, dist::GroupOptions& options);

}  // namespace heddle::cli
