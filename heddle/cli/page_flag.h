// --page: a page beside, or in place of, what a command prints.
#pragma once

#include <string>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace heddle::cli {

/// Adds --page FILE.html. `help`: what the page shows, "write a page of ..".
CLI::Option* add_page_flag(CLI::App& command, std::string& path, const char* help);

}  // namespace heddle::cli
