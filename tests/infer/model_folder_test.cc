// The folder that a model is written into: by one process at a time, whole or as it was.
#include "heddle/infer/loading/model_folder.h"

#include <gtest/gtest.h>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "tests/base/temporary.h"
#include "tests/support/cli_runner.h"

namespace heddle {
namespace {

void write_model(NewModelFolder& folder, const std::string& config) {
  folder.write(
      [&](const std::string& made) { write_file_atomic(join_path(made, "config.json"), config); });
}

TEST(NewModelFolder, is_refused_while_another_writes_there) {
  const TemporaryFolder folder;
  const std::string out = folder / "out";
  {
    NewModelFolder first(out, folder / "source", false);
    expect_error(ErrorKind::usage, {out, "another heddle is writing here"},
                 [&] { NewModelFolder(out, folder / "source", true); });
    write_model(first, "{}");
  }
  NewModelFolder next(out, folder / "source", true);
  write_model(next, "[]");
  EXPECT_EQ(read_file(join_path(out, "config.json")), "[]");
}

TEST(NewModelFolder, that_nothing_came_into_goes_again) {
  const TemporaryFolder folder;
  { const NewModelFolder unused(folder / "out", folder / "source", false); }
  EXPECT_FALSE(path_exists(folder / "out"));
  expect_error(ErrorKind::usage, {"no name"}, [&] { NewModelFolder("", folder / "source", true); });
}

TEST(NewModelFolder, removes_what_killed_writers_left) {
  const TemporaryFolder folder;
  const std::string out = folder / "out";
  const std::string killed = join_path(out, "export.tmp-0123456789abcdef"),
                    half = join_path(out, "replaced.tmp-0123456789abcdef"),
                    file = join_path(out, "tokenizer.model.tmp-0123456789abcdef");
  for (const std::string& each : {killed, half}) make_directories(each);
  write_file_atomic(file, "half");
  NewModelFolder target(out, folder / "source", false);
  write_model(target, "{}");
  EXPECT_FALSE(path_exists(killed));
  EXPECT_FALSE(path_exists(half));
  EXPECT_FALSE(path_exists(file));
}

}  // namespace
}  // namespace heddle
