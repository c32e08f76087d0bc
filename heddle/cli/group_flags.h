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
/// --wire, of a command whose ranks sum gradients; see wire_type().
void add_wire_flag(Subcommand& command, std::string& wire);
/// f32 or bf16 by its name.
inline DType wire_type(const std::string& name) {
  return name == dtype_name(DType::bf16) ? DType::bf16 : DType::f32;
}

}  // namespace heddle::cli
