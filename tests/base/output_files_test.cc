// Writing over what is no plain file: devices, pipes, links; permissions; whole folders.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <filesystem>
#include <set>
#include <thread>

#include "heddle/base/files/files.h"
#include "tests/base/temporary.h"

namespace heddle {
namespace {

namespace fs = std::filesystem;

mode_t mode_of(const std::string& path) {
  struct stat info = {};
  lstat(path.c_str(), &info);
  return info.st_mode;
}

TEST(OutputFiles, device_is_written_through_and_stays_one) {
  TemporaryFolder folder;
  const std::string null = folder / "null";
  // Of its own where that is allowed: a program that renames over /dev/null harms the machine.
  const bool is_own = mknod(null.c_str(), S_IFCHR | 0666, makedev(1, 3)) == 0;
  write_file_atomic(is_own ? null : "/dev/null", "text");
  EXPECT_TRUE(S_ISCHR(mode_of(is_own ? null : "/dev/null")));
  expect_error(ErrorKind::system, {"/dev/full", "No space left"},
               [] { write_file_atomic("/dev/full", "text"); });
  EXPECT_TRUE(S_ISCHR(mode_of("/dev/full")));
}

TEST(OutputFiles, fifo_gives_its_reader_the_bytes_and_stays_one) {
  TemporaryFolder folder;
  ASSERT_EQ(mkfifo((folder / "fifo").c_str(), 0600), 0);
  std::string seen;
  std::thread reader([&] { seen = read_file(folder / "fifo"); });
  const std::string text(100'000, 'x');  // more than a pipe holds
  write_file_atomic(folder / "fifo", text);
  reader.join();
  EXPECT_TRUE(seen == text);
  EXPECT_TRUE(S_ISFIFO(mode_of(folder / "fifo")));
  EXPECT_EQ(list_directory(folder.path()), std::vector<std::string>{"fifo"});
}

TEST(OutputFiles, open_descriptor_goes_on_behind_what_it_has_written) {
  TemporaryFolder folder;
  const int fd = open((folder / "a").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(write(fd, "before ", 7), 7);
  for (const char* name : {"/dev/fd/", "/proc/self/fd/"}) {
    write_file_atomic(name + std::to_string(fd), "text ");
  }
  ASSERT_EQ(write(fd, "behind", 6), 6);
  close(fd);
  EXPECT_EQ(read_file(folder / "a"), "before text text behind");
}

TEST(OutputFiles, link_is_kept_and_its_target_replaced) {
  TemporaryFolder folder;
  make_directories(folder / "there");
  folder.write("there/a", "old");
  fs::create_symlink("there/a", folder / "first");
  fs::create_symlink(folder / "first", folder / "second");
  write_file_atomic(folder / "second", "new");
  EXPECT_EQ(read_file(folder / "there/a"), "new");
  EXPECT_TRUE(fs::is_symlink(folder / "second") && fs::is_symlink(folder / "first"));
  EXPECT_TRUE(S_ISREG(mode_of(folder / "there/a")));
  EXPECT_EQ(list_directory(folder / "there"), std::vector<std::string>{"a"});
}

TEST(OutputFiles, dangling_link_is_kept_and_its_target_made) {
  TemporaryFolder folder;
  make_directories(folder / "there");
  fs::create_symlink("there/a", folder / "link");
  write_file_atomic(folder / "link", "new");
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_EQ(read_file(folder / "there/a"), "new");
}

TEST(OutputFiles, links_to_folders_and_in_circles_are_data_errors) {
  TemporaryFolder folder;
  make_directories(folder / "there");
  fs::create_symlink("there", folder / "link");
  fs::create_symlink("circle", folder / "circle");
  for (const char* name : {"there", "link"}) {
    expect_error(ErrorKind::data, {folder / name, "Is a directory"},
                 [&] { write_file_atomic(folder / name, "text"); });
  }
  expect_error(ErrorKind::data, {folder / "circle", "symbolic links"},
               [&] { write_file_atomic(folder / "circle", "text"); });
  EXPECT_EQ(list_directory(folder.path()), (std::vector<std::string>{"circle", "link", "there"}));
  EXPECT_TRUE(list_directory(folder / "there").empty());
}

TEST(OutputFiles, permissions_of_an_old_file_are_kept) {
  TemporaryFolder folder;
  const std::string path = folder.write("a", "old");
  for (const mode_t mode : {0600, 0640, 0755}) {
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    write_file_atomic(path, "new");
    EXPECT_EQ(mode_of(path) & 07777, mode);
  }
}

TEST(OutputFiles, temporary_names_do_not_repeat) {
  std::set<std::string> names;
  for (int i = 0; i < 100; ++i) names.insert(temporary_name("a"));
  EXPECT_EQ(names.size(), 100u);
}

TEST(OutputFiles, folder_appears_whole_or_not_at_all) {
  TemporaryFolder folder;
  const auto one_file = [](const std::string& f) { write_file_atomic(join_path(f, "a"), "1"); };
  expect_error(ErrorKind::data, {"half way"}, [&] {
    write_folder_atomic(folder / "f", [&](const std::string& f) {
      one_file(f);
      EXPECT_FALSE(path_exists(folder / "f"));
      fail(ErrorKind::data, "half way");
    });
  });
  EXPECT_TRUE(list_directory(folder.path()).empty());
  write_folder_atomic(folder / "f", one_file);
  EXPECT_EQ(read_file(folder / "f/a"), "1");
  EXPECT_EQ(list_directory(folder.path()), std::vector<std::string>{"f"});
  expect_error(ErrorKind::system, {folder / "f"},
               [&] { write_folder_atomic(folder / "f", one_file); });
}

TEST(OutputFiles, what_lies_inside_a_folder_is_known_by_name_and_behind_links) {
  TemporaryFolder folder;
  make_directories(folder / "run/best");
  make_directories(folder / "runs");
  fs::create_symlink(folder / "run", folder / "link");
  const std::string run = folder / "run";
  for (const char* name : {"run", "run/", "run/best", "run/none", "link/best", "runs/../run/x"}) {
    EXPECT_TRUE(lies_inside(folder / name, run)) << name;
    EXPECT_TRUE(lies_inside(folder / name, run + "/")) << name;
  }
  for (const char* name : {"runs", "", "run/../x", "ru"}) {
    EXPECT_FALSE(lies_inside(folder / name, run)) << name;
  }
}

}  // namespace
}  // namespace heddle
