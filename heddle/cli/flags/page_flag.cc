// Adds --page.
#include "heddle/cli/flags/page_flag.h"

namespace heddle::cli {

Option add_page_flag(Subcommand& command, std::string& path, const char* help) {
  return command.add_option("--page", path, help)->type_name("FILE.html");
}

}  // namespace heddle::cli
