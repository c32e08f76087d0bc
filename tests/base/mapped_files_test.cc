// Files that change while they are mapped: noticed before work, or explained when bytes are gone.

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "heddle/base/files/files.h"
#include "heddle/base/files/mmap.h"
#include "tests/base/temporary.h"

namespace heddle {
namespace {

const std::string& two_pages() {
  static const std::string text(2 * static_cast<size_t>(sysconf(_SC_PAGESIZE)), 'x');
  return text;
}

// As if it had been written a while ago: the clock of files has ticks of some milliseconds.
std::string write_old(const TemporaryFolder& folder, const std::string& name) {
  const std::string path = folder.write(name, two_pages());
  std::filesystem::last_write_time(
      path, std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  return path;
}

TEST(MappedFiles, a_file_that_is_rewritten_in_place_is_a_data_error_that_names_it) {
  TemporaryFolder folder;
  const std::string path = write_old(folder, "a");
  {
    const MappedFile mapped(path, Mapping::own_copy);
    EXPECT_NO_THROW(check_mapped_files());
    folder.write("a", std::string(two_pages().size(), 'y'));
    expect_error(ErrorKind::data, {path, "written to while in use"}, [] { check_mapped_files(); });
  }
  EXPECT_NO_THROW(check_mapped_files());  // it is mapped no more
}

TEST(MappedFiles, a_file_that_is_replaced_or_removed_has_not_changed) {
  TemporaryFolder folder;
  const MappedFile replaced(write_old(folder, "a")), removed(write_old(folder, "b"));
  write_file_atomic(replaced.path(), "another");
  remove_path(removed.path());
  chmod(replaced.path().c_str(), 0600);
  EXPECT_NO_THROW(check_mapped_files());
}

TEST(MappedFiles, a_mapping_that_moves_is_watched_over_until_its_last_owner_ends) {
  TemporaryFolder folder;
  const std::string path = write_old(folder, "a");
  {
    MappedFile first(path);
    MappedFile second = std::move(first);
    folder.write("a", "short");
    EXPECT_THROW(check_mapped_files(), Error);
  }
  EXPECT_NO_THROW(check_mapped_files());
}

TEST(MappedFilesDeathTest, bytes_that_are_gone_end_the_program_with_a_message_and_code_3) {
  TemporaryFolder folder;
  const std::string path = write_old(folder, "weights");
  EXPECT_EXIT(
      {
        explain_cut_files();
        const MappedFile mapped(path);
        truncate(path.c_str(), 1);
        const volatile std::byte* const last = &mapped.bytes().back();
        _exit(std::to_integer<int>(*last));
      },
      testing::ExitedWithCode(3), "heddle: .*/weights: bytes of the file are gone");
}

}  // namespace
}  // namespace heddle
