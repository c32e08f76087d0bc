// --page: a page beside, or in place of, what a command prints.
#pragma once

#include <string>

#include "heddle/cli/command_line.h"

namespace heddle::cli {

/// Adds --page FILE.html. `help`: what the page shows, "write a page of ..".
Option add_page_flag(Subcommand& command, std::string& path, const char* help);

}  // namespace heddle::cli
