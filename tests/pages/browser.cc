// Chromium as a child process: the page goes in as a file, the document comes out as text.
#include "tests/pages/browser.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <iostream>
#include <sstream>

#include "heddle/base/json/json.h"
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

// Shows page.html beside this file in one window after another, and gathers what was driven there.
constexpr const char* kFrames = R"html(<!doctype html>
<meta charset="utf-8">
<body>
<script>
(async () => {
  const all = {failures: [], errors: [], checks: 0};
  for (const [width, height] of [[1280, 900], [390, 800]]) {
    for (const scheme of ["light", "dark"]) {
      const frame = document.createElement("iframe");
      frame.style = `width: ${width}px; height: ${height}px; border: 0`;
      frame.src = `page.html#${scheme}`;
      document.body.append(frame);
      let seen = null;
      while (!seen) {
        await new Promise((done) => setTimeout(done, 50));
        seen = frame.contentDocument && frame.contentDocument.getElementById("driven");
      }
      const driven = JSON.parse(seen.textContent), theme = frame.contentDocument.documentElement.dataset.theme;
      if (theme !== scheme) driven.failures.push(`the page is ${theme}`);
      for (const key of ["failures", "errors"]) all[key].push(...driven[key].map((f) => `${width}, ${scheme}: ${f}`));
      all.checks += driven.checks;
      frame.remove();
    }
  }
  const out = document.createElement("script");
  out.type = "application/json";
  out.id = "driven";
  out.textContent = JSON.stringify(all).replace(/</g, "\\u003c");
  document.body.append(out);
})();
</script>
</body>
)html";
constexpr int kWindows = 4;
constexpr int kStartsMore = 3;  // of a browser that did not come to the end of the script

std::string asset(const std::string& name) {
  return read_file(std::string(kSource) + "/tests/pages/" + name);
}

std::string script(const std::string& text) { return "<script>\n" + text + "</script>\n"; }

std::string with_driver(const std::string& page, const std::string& steps,
                        const std::string& before = "") {
  const std::string head = "<meta charset=\"utf-8\">\n", end = "</body>";
  std::string html = page;
  html.insert(html.find(head) + head.size(), kListener + before);
  html.insert(html.rfind(end),
              script(asset("driver.js") + "reader.run(async () => {\n" + steps + "\n});\n"));
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

// The browser's run over the file in a window, with a profile of its own.
CliResult browse(const std::filesystem::path& file, const Window& window) {
  const TempDir folder;
  std::vector<std::string> words = {
      kBrowser,
      "--headless=new",
      "--no-sandbox",
      "--disable-gpu",
      "--disable-dev-shm-usage",
      "--no-first-run",
      "--allow-file-access-from-files",
      "--force-prefers-reduced-motion",
      "--user-data-dir=" + (folder / "profile").string(),
      "--window-size=" + std::to_string(window.width) + "," + std::to_string(window.height),
      "--virtual-time-budget=20000",
      "--enable-logging=stderr",
      "--dump-dom"};
  if (window.is_dark) words.push_back("--blink-settings=preferredColorScheme=0");
  words.push_back("file://" + file.string());
  return run_command(words, {});
}

// Opens the file in a window and fails the test for what went wrong there.
void open_file(const std::filesystem::path& file, int checks, const Window& window) {
  CliResult result = browse(file, window);
  Json seen = driven(result.out);
  // On a loaded machine one browser in ten hangs or dies at its start.
  for (int again = 1; !seen.is_object() && again <= kStartsMore; ++again) {
    std::cerr << fmt::format("the script did not end; again, {} of {}\n", again, kStartsMore)
              << result.err;
    result = browse(file, window);
    seen = driven(result.out);
  }
  ASSERT_FALSE(result.timed_out) << result.err;
  ASSERT_TRUE(seen.is_object()) << "the script did not end\n" << result.err;
  for (const std::string& failure : seen.at("failures").as_strings()) ADD_FAILURE() << failure;
  for (const std::string& error : seen.at("errors").as_strings()) ADD_FAILURE() << error;
  EXPECT_EQ(seen.get_int("checks"), checks);
  std::istringstream log(result.err);
  for (std::string line; std::getline(log, line);) {
    if (line.find(":CONSOLE") != std::string::npos) ADD_FAILURE() << line;
  }
}

}  // namespace

void drive(const std::string& path, const std::string& steps, int checks, const Window& window) {
  const TempDir folder;
  write_file(folder / "page.html", with_driver(read_file(path), steps));
  open_file(folder / "page.html", checks, window);
}

void check_layout(const std::string& path, const std::string& steps, int checks) {
  const TempDir folder;
  write_file(folder / "page.html", with_driver(read_file(path), "await reader.layout();\n" + steps,
                                               script(asset("layout.js"))));
  write_file(folder / "frames.html", kFrames);
  open_file(folder / "frames.html", kWindows * (1 + checks), {});
}

}  // namespace heddle::testing
