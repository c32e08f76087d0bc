// Drives a page in headless Chromium as a reader would, by a script that ends up inside a copy.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tests/support/cli_runner.h"

namespace heddle::testing {

struct Window {
  int width = 1280, height = 900;
  bool is_dark = false;
};

/// Opens a copy of the page at `path`, runs `steps` in it (the body of an async function; it uses
/// `reader` of tests/pages/driver.js), and fails the test for each check that failed, each error of
/// a script, each message on the console and each check that was not reached.
/// checks: how many of reader.check() and reader.equal() are to run.
void drive(const std::string& path, const std::string& steps, int checks,
           const Window& window = {});

/// Opens a copy of the page at 1280 and at 390 pixels, light and dark, and fails the test where
/// texts lie over each other, reach beyond the window, are cut off, too faint or too small
/// (tests/pages/layout.js), as the page opens and wherever `steps` call reader.layout("state").
/// checks: how many of reader.layout(), reader.check() and reader.equal() `steps` run.
void check_layout(const std::string& path, const std::string& steps = "", int checks = 0);

/// A page that a command writes.
class PageTest : public ::testing::Test {
 protected:
  // On a desktop, and on a phone in the dark.
  void drive_both(const std::string& steps, int checks) {
    drive(path_, steps, checks);
    drive(path_, steps, checks, {.width = 390, .height = 800, .is_dark = true});
  }

  TempDir folder_;
  const std::string path_ = (folder_ / "page.html").string();
};

}  // namespace heddle::testing
