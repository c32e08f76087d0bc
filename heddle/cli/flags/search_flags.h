// Flags of a search: those of SearchConfig's fields, with their help.
#pragma once

#include <initializer_list>
#include <vector>

#include "heddle/cli/command_line.h"
#include "heddle/infer/decoding/search_config.h"

namespace heddle::cli {

/// The flags that set these fields, by key.
std::vector<Option> add_search_flags(Subcommand& command, SearchConfig& search,
                                     std::initializer_list<const char*> keys);

/// Errors: usage, naming the flag, for a value outside its range.
void check_search_flags(const SearchConfig& search);

}  // namespace heddle::cli
