// Flags of a search: those of SearchConfig's fields, with their help.
#pragma once

#include <initializer_list>
#include <vector>

#include "heddle/cli/command_line.h"
#include "heddle/infer/search/search_config.h"

namespace heddle::cli {

/// The flags that set these fields, by key.
std::vector<Option> add_search_flags(Subcommand& command, SearchConfig& search,
                                     std::initializer_list<const char*> keys);

/// The flag that sets a field: its key with dashes, but for two of searches.
std::string flag_of(std::string_view key);

}  // namespace heddle::cli
