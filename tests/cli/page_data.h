// What a page that the program wrote holds.
#pragma once

#include "heddle/base/json/json.h"
#include "tests/support/cli_runner.h"

namespace heddle::testing {

/// The folder of a small model that takes texts.
inline std::string text_model(const std::string& name) {
  return std::string(kFixtures) + "/texts/" + name;
}

/// The JSON inside the page.
inline Json page_data(const std::filesystem::path& page) {
  const std::string html = read_file(page), open = "id=\"data\">";
  const size_t from = html.find(open) + open.size();
  return Json::parse(html.substr(from, html.find("</script>", from) - from), "page");
}

}  // namespace heddle::testing
