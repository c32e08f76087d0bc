// Adds --page.
#include "heddle/cli/page_flag.h"

#include <CLI/CLI.hpp>

namespace heddle::cli {

CLI::Option* add_page_flag(CLI::App& command, std::string& path, const char* help) {
  return command.add_option("--page", path, help)->type_name("FILE.html");
}

}  // namespace heddle::cli
