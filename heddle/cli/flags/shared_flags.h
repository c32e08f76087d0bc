// Flags that several commands have: how they compute, search and align, and the page they write.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "heddle/cli/command_line.h"
#include "heddle/infer/search/search_config.h"
#include "heddle/infer/words/alignment.h"
#include "heddle/inspect/pages/page.h"

namespace heddle::cli {

struct ComputeFlags {
  std::string precision = "auto";
  int threads = 0;  ///< 0: as many as there are cores
};

/// Adds --precision and --threads.
void add_compute_flags(Subcommand& command, ComputeFlags& flags);

/// Sets the threads. Errors: usage, naming the flag, for a wrong value.
Precision apply_compute_flags(const ComputeFlags& flags);

/// The flags that set these fields, by key.
std::vector<Option> add_search_flags(Subcommand& command, SearchConfig& search,
                                     std::initializer_list<const char*> keys);

/// The flag that sets a field: its key with dashes, but for two of searches.
std::string flag_of(std::string_view key);

/// Adds --align-layers, --align-heads and --align-shift; they may be given only with `needed`, if
/// not null.
void add_alignment_flags(Subcommand& command, AlignmentOptions& options, Option needed);

/// Adds --page FILE.html. `help`: what the page shows, "write a page of ..".
Option add_page_flag(Subcommand& command, std::string& path, const char* help);
/// Whether a page is asked for (`path` is not empty). Errors: see inspect::check_output().
bool wants_page(const std::string& path);
/// Writes the page, and says so: "eval: a page in FILE.html; open it in a browser".
void write_page(const char* command, const std::string& what, const std::string& path,
                const inspect::Page& page);

}  // namespace heddle::cli
