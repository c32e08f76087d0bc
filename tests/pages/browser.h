// Drives a page in headless Chromium as a reader would, by a script that ends up inside a copy.
#pragma once

#include <string>

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

}  // namespace heddle::testing
