// Whole files: atomic writing under failure, checksums, mapping.
#include "heddle/base/files/files.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

#include "heddle/base/error.h"
#include "heddle/base/files/mmap.h"
#include "tests/base/temporary.h"

namespace heddle {
namespace {

/// Files of this process cannot grow beyond a size while this lives: a disk that is full.
class SizeLimit {
 public:
  explicit SizeLimit(rlim_t bytes) {
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old_);
    rlimit limit = old_;
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~SizeLimit() {
    setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit old_;
  void (*handler_)(int);
};

TEST(Files, written_bytes_read_back) {
  TemporaryFolder folder;
  const std::string text("a\0b\r\n\xff", 6);
  write_file_atomic(folder / "a", text);
  EXPECT_EQ(read_file(folder / "a"), text);
  EXPECT_EQ(file_size(folder / "a"), 6);
  write_file_atomic(folder / "a", "");
  EXPECT_EQ(read_file(folder / "a"), "");
  const std::string large(1'000'000, 'x');
  write_file_atomic(folder / "a", large);
  EXPECT_EQ(read_file(folder / "a"), large);
}

TEST(Files, full_disk_is_a_system_error_and_leaves_the_old_file_alone) {
  TemporaryFolder folder;
  const std::string path = folder.write("a", "old");
  const std::string text(100'000, 'x');
  for (rlim_t limit : {0, 1, 4096, 99'999}) {
    const SizeLimit full(limit);
    expect_error(ErrorKind::system, {path, "cannot write"}, [&] { write_file_atomic(path, text); });
  }
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(list_directory(folder.path()), std::vector<std::string>{"a"});
}

TEST(Files, exception_of_the_writer_leaves_the_old_file_alone) {
  TemporaryFolder folder;
  const std::string path = folder.write("a", "old");
  expect_error(ErrorKind::data, {"half way"}, [&] {
    write_file_atomic(path, [](const ByteSink& sink) {
      sink(std::as_bytes(std::span("new")));
      fail(ErrorKind::data, "half way");
    });
  });
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(list_directory(folder.path()), std::vector<std::string>{"a"});
}

TEST(Files, folder_without_permission_is_a_system_error) {
  TemporaryFolder folder;
  chmod(folder.path().c_str(), 0555);
  const bool is_root = geteuid() == 0;  // who may write anywhere: be "nobody" for a while
  ASSERT_EQ(is_root ? seteuid(65534) : 0, 0);
  const std::string path = folder / "a";
  expect_error(ErrorKind::system, {path, "Permission denied"},
               [&] { write_file_atomic(path, "x"); });
  expect_error(ErrorKind::system, {path}, [&] { make_directories(path + "/b"); });
  ASSERT_EQ(is_root ? seteuid(0) : 0, 0);
  chmod(folder.path().c_str(), 0700);
}

TEST(Files, wrong_paths_are_data_errors_that_name_them) {
  TemporaryFolder folder;
  folder.write("file", "x");
  expect_error(ErrorKind::data, {folder / "none", "No such file"},
               [&] { read_file(folder / "none"); });
  expect_error(ErrorKind::data, {folder.path(), "Is a directory"},
               [&] { read_file(folder.path()); });
  // It has no end, and would be read until the memory has one.
  expect_error(ErrorKind::data, {"/dev/zero", "no regular file", "256 MiB"},
               [] { read_file("/dev/zero"); });
  expect_error(ErrorKind::data, {folder / "none/a"},
               [&] { write_file_atomic(folder / "none/a", ""); });
  expect_error(ErrorKind::data, {folder / "file"}, [&] { make_directories(folder / "file"); });
  expect_error(ErrorKind::data, {folder / "file/a"}, [&] { make_directories(folder / "file/a"); });
  expect_error(ErrorKind::data, {folder / "none"}, [&] { list_directory(folder / "none"); });
}

TEST(Files, folders_are_made_listed_and_removed) {
  TemporaryFolder folder;
  make_directories(folder / "a/b/c");
  make_directories(folder / "a/b/c");
  write_file_atomic(folder / "a/b/x", "1");
  EXPECT_EQ(list_directory(folder / "a/b"), (std::vector<std::string>{"c", "x"}));
  EXPECT_TRUE(is_directory(folder / "a"));
  rename_path(folder / "a/b/x", folder / "a/y");
  EXPECT_EQ(read_file(folder / "a/y"), "1");
  remove_path(folder / "a");
  remove_path(folder / "a");
  EXPECT_FALSE(path_exists(folder / "a"));
}

TEST(Files, temporary_names_are_told_from_others) {
  EXPECT_TRUE(is_temporary_name(temporary_name("model.safetensors")));
  for (const char* name : {"a.tmp-", "a.tmp-0123456789abcdex", ".tmp-0123456789abcdef", "a",
                           "a.tmp-123-0", "tmp-0123456789abcdef"}) {
    EXPECT_FALSE(is_temporary_name(name)) << name;
  }
}

TEST(Files, checksum_equals_the_reference_xxh64) {
  // From the xxhash package of Python, of the bytes 0, 7, 14, ...
  const std::vector<std::pair<size_t, const char*>> known = {
      {0, "ef46db3751d8e999"},  {1, "e934a84adb052768"},   {3, "9ff70a635a6209ab"},
      {4, "ae5acdc00a55ac41"},  {7, "d734a6b26f3da63e"},   {8, "87116b3365b924eb"},
      {31, "0f187c62b1e722b7"}, {32, "91b0cb0931a8c629"},  {33, "931b043cf8d65b94"},
      {63, "219110bf13e2fa26"}, {100, "8e2272c08247d5db"}, {1000, "25275608a9cfc168"}};
  for (const auto& [size, expected] : known) {
    std::string text(size, '\0');
    for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 7);
    EXPECT_EQ(checksum(text), expected) << size;
    TemporaryFolder folder;
    EXPECT_EQ(checksum_file(folder.write("a", text)), expected) << size;
  }
}

TEST(MappedFile, bytes_equal_the_file_and_outlive_a_move) {
  TemporaryFolder folder;
  MappedFile file(folder.write("a", "hello"));
  MappedFile other = std::move(file);
  EXPECT_EQ(std::to_integer<char>(other.bytes()[4]), 'o');
  MappedFile third(folder.write("b", "x"));
  third = std::move(other);
  EXPECT_EQ(third.size(), 5u);
}

TEST(MappedFile, empty_missing_and_folder_are_data_errors) {
  TemporaryFolder folder;
  expect_error(ErrorKind::data, {"empty (0 bytes)"}, [&] { MappedFile(folder.write("a", "")); });
  expect_error(ErrorKind::data, {"No such file"}, [&] { MappedFile(folder / "none"); });
  expect_error(ErrorKind::data, {"regular file"}, [&] { MappedFile(folder.path()); });
}

}  // namespace
}  // namespace heddle
