// What opening a log that a cut has hurt leaves of it.
#include "heddle/train/run/run_folder.h"

#include <gtest/gtest.h>

#include "heddle/base/files/files.h"
#include "tests/base/temporary.h"

namespace heddle::train {
namespace {

Json numbered(int number) {
  Json line = Json::object();
  line["update"] = number;
  return line;
}

const std::string kFirst = "{\"update\": 1}\n", kSecond = "{\"update\": 2}\n";

TEST(RunLog, lines_behind_what_the_state_knows_are_cut) {
  const TemporaryFolder folder;
  const std::string path = folder.write("log.jsonl", kFirst + kFirst + "{\"upd");
  RunLog log(path, std::ssize(kFirst));
  log.write(numbered(2));
  EXPECT_EQ(read_file(path), kFirst + kSecond);
  EXPECT_EQ(log.bytes(), std::ssize(kFirst + kSecond));
}

TEST(RunLog, line_that_a_cut_shortened_is_dropped_so_that_none_merge) {
  const TemporaryFolder folder;
  const std::string path = folder.write("log.jsonl", kFirst + "{\"upd");
  RunLog log(path, 1000);
  log.write(numbered(2));
  EXPECT_EQ(read_file(path), kFirst + kSecond);
}

TEST(RunLog, log_that_is_gone_begins_anew) {
  const TemporaryFolder folder;
  RunLog log(folder / "log.jsonl", 1000);
  EXPECT_EQ(log.bytes(), 0);
  log.write(numbered(1));
  log.sync();
  EXPECT_EQ(read_file(folder / "log.jsonl"), kFirst);
}

}  // namespace
}  // namespace heddle::train
