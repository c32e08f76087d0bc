// Chromium as a child process: the page goes in as a file, the document comes out as text.
#include "tests/pages/browser.h"

#include <gtest/gtest.h>

#include <sstream>

#include "heddle/base/json.h"
#include "tests/support/cli_runner.h"

namespace heddle::testing {
namespace {

// Errors are counted from before the first script of the page.
constexpr const char* kListener =
    "<script>window.driveErrors = [];"
    "window.addEventListener('error', (e) => window.driveErrors.push(`${e.message} (line "
    "${e.lineno})`));"
    "window.addEventListener('unhandledrejection', (e) => "
    "window.driveErrors.push(String(e.reason)));</script>\n";

std::string with_driver(const std::string& page, const std::string& steps) {
  const std::string driver = read_file(std::string(kSource) + "/tests/pages/driver.js");
  const std::string head = "<meta charset=\"utf-8\">\n", end = "</body>";
  std::string html = page;
  html.insert(html.find(head) + head.size(), kListener);
  html.insert(html.rfind(end),
              "<script>\n" + driver + "reader.run(async () => {\n" + steps + "\n});\n</script>\n");
  return html;
}

// The JSON that the driver left in the document.
Json driven(const std::string& document) {
  const std::string open = "id=\"driven\">";
  const size_t begin = document.rfind(open);  // the driver itself speaks of it before
  if (begin == std::string::npos) return {};
  const size_t from = begin + open.size();
  return Json::parse(document.substr(from, document.find("</script>", from) - from), "driven");
}

}  // namespace

void drive(const std::string& path, const std::string& steps, int checks, const Window& window) {
  const TempDir folder;
  const auto copy = folder / "page.html";
  write_file(copy, with_driver(read_file(path), steps));
  std::vector<std::string> words = {
      kBrowser,
      "--headless=new",
      "--no-sandbox",
      "--disable-gpu",
      "--disable-dev-shm-usage",
      "--no-first-run",
      "--user-data-dir=" + (folder / "profile").string(),
      "--window-size=" + std::to_string(window.width) + "," + std::to_string(window.height),
      "--virtual-time-budget=20000",
      "--enable-logging=stderr",
      "--dump-dom"};
  if (window.is_dark) words.push_back("--blink-settings=preferredColorScheme=0");
  words.push_back("file://" + copy.string());
  const CliResult result = run_command(words, {});
  ASSERT_FALSE(result.timed_out) << result.err;
  const Json seen = driven(result.out);
  ASSERT_TRUE(seen.is_object()) << "the script did not end\n" << result.err;
  for (const std::string& failure : seen.at("failures").as_strings()) ADD_FAILURE() << failure;
  for (const std::string& error : seen.at("errors").as_strings()) ADD_FAILURE() << error;
  EXPECT_EQ(seen.get_int("checks"), checks);
  std::istringstream log(result.err);
  for (std::string line; std::getline(log, line);) {
    if (line.find(":CONSOLE") != std::string::npos) ADD_FAILURE() << line;
  }
}

}  // namespace heddle::testing
