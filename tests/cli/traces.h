// Reading the trace that --profile writes.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>

#include "heddle/base/json/json.h"
#include "tests/support/cli_runner.h"

namespace heddle::testing {

/// Checks every event of a trace; the names that were seen, as "name cat layer".
inline std::set<std::string> read_trace(const std::filesystem::path& path) {
  std::set<std::string> seen;
  const Json trace = Json::load(path.string());
  for (const Json& e : trace.at("traceEvents").as_array()) {
    EXPECT_EQ(e.get_string("ph"), "X");
    EXPECT_GE(e.get_double("ts"), 0);
    EXPECT_GE(e.get_double("dur"), 0);
    const Json& args = e.at("args");
    EXPECT_GE(args.get_int("bytes"), 0);
    EXPECT_GE(args.get_double("flops"), 0);
    seen.insert(fmt::format("{} {} {}", e.get_string("name"), e.get_string("cat"),
                            args.get_string("layer")));
  }
  return seen;
}

}  // namespace heddle::testing
