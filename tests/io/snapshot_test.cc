// Saving state: commit, damage, leftovers, a full disk, and processes killed while they save.
#include "heddle/io/snapshot.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <random>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/io/safetensors.h"
#include "tests/base/temporary.h"

namespace heddle {
namespace {

std::string snapshot_name(int64_t update) { return fmt::format("s-{:06d}.safetensors", update); }

/// Saves a state whose every value is its update number, as a trainer would.
Manifest save(const std::string& folder, int64_t update, const Manifest* previous = nullptr) {
  const std::vector<float> values(static_cast<size_t>(1000 + update % 7 * 3000),
                                  static_cast<float>(update));
  const auto size = static_cast<int64_t>(values.size());
  write_safetensors(join_path(folder, snapshot_name(update)),
                    {{"x", DType::f32, {size}, std::as_bytes(std::span(values))}});
  Json content = Json::object();
  content["update"] = update;
  std::vector<std::string> names = {snapshot_name(update)};
  if (previous != nullptr) names.push_back(previous->files[0].name);
  return commit_manifest(folder, content, names, previous);
}

TEST(Snapshot, committed_state_loads_and_a_new_folder_has_none) {
  TemporaryFolder folder;
  EXPECT_FALSE(load_manifest(folder.path()).has_value());
  const Manifest first = save(folder.path(), 1);
  save(folder.path(), 2, &first);
  const std::optional<Manifest> loaded = load_manifest(folder.path());
  ASSERT_TRUE(loaded.has_value());
  EXPECT_EQ(loaded->content.get_int("update"), 2);
  ASSERT_EQ(loaded->files.size(), 2u);
  EXPECT_EQ(loaded->files[0].name, snapshot_name(2));
  EXPECT_EQ(loaded->files[1].checksum, first.files[0].checksum);
}

TEST(Snapshot, any_altered_byte_is_a_data_error_that_names_the_file) {
  TemporaryFolder folder;
  const Manifest manifest = save(folder.path(), 1);
  for (const std::string& name : {manifest.files[0].name, std::string(kManifestName)}) {
    const std::string whole = read_file(folder / name);
    std::mt19937_64 random(3);
    for (int i = 0; i < 200; ++i) {
      std::string bytes = whole;
      bytes[random() % (bytes.size() - 1)] ^= static_cast<char>(1 << random() % 7);
      folder.write(name, bytes);
      try {
        const auto loaded = load_manifest(folder.path());
        EXPECT_EQ(name, kManifestName) << "a changed snapshot went unseen";
        EXPECT_EQ(loaded->content, manifest.content);  // white space was changed, at most
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::data) << error.what();
        EXPECT_NE(std::string(error.what()).find(folder / name), std::string::npos);
      }
    }
    folder.write(name, whole.substr(0, whole.size() / 2));
    expect_error(ErrorKind::data, {folder / name}, [&] { load_manifest(folder.path()); });
    folder.write(name, "");
    expect_error(ErrorKind::data, {folder / name}, [&] { load_manifest(folder.path()); });
    folder.write(name, whole);
  }
  remove_path(folder / manifest.files[0].name);
  expect_error(ErrorKind::data, {manifest.files[0].name, "missing"},
               [&] { load_manifest(folder.path()); });
}

TEST(Snapshot, commit_of_a_missing_file_keeps_the_old_state) {
  TemporaryFolder folder;
  save(folder.path(), 1);
  expect_error(ErrorKind::data, {"none"},
               [&] { commit_manifest(folder.path(), Json::object(), {"none"}); });
  EXPECT_EQ(load_manifest(folder.path())->content.get_int("update"), 1);
}

TEST(Snapshot, names_that_leave_the_folder_are_refused) {
  TemporaryFolder folder;
  folder.write("file", "x");
  for (const char* name : {"../x", "/etc/passwd", "a/../../x", "", ".", "..", "a/", "./file"}) {
    expect_error(ErrorKind::data, {"below the manifest's folder"},
                 [&] { commit_manifest(folder.path(), Json::object(), {name}); });
  }
}

TEST(Snapshot, leftovers_are_removed_and_named_files_kept) {
  TemporaryFolder folder;
  make_directories(folder / "sub");
  folder.write("sub/kept", "1");
  folder.write("sub/left", "1");
  folder.write("s.safetensors.tmp-0123456789abcdef", "1");
  const Manifest manifest = commit_manifest(folder.path(), Json::object(), {"sub/kept"});
  const FolderLock lock(folder.path());
  EXPECT_EQ(remove_unnamed(folder.path(), manifest),
            (std::vector<std::string>{"s.safetensors.tmp-0123456789abcdef", "sub/left"}));
  EXPECT_TRUE(load_manifest(folder.path()).has_value());
  EXPECT_TRUE(remove_unnamed(folder.path(), manifest).empty());
}

TEST(Snapshot, second_lock_on_a_folder_is_a_usage_error_until_the_first_is_gone) {
  TemporaryFolder folder;
  {
    const FolderLock lock(folder.path());
    expect_error(ErrorKind::usage, {folder.path()}, [&] { FolderLock second(folder.path()); });
  }
  FolderLock third(folder.path());
}

TEST(Snapshot, full_disk_at_any_size_keeps_the_old_state) {
  TemporaryFolder folder;
  const Manifest first = save(folder.path(), 1);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit old;
  getrlimit(RLIMIT_FSIZE, &old);
  for (rlim_t bytes : {0, 10, 100, 300, 4096, 16'000, 28'000}) {
    rlimit limit = old;
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
    expect_error(ErrorKind::system, {snapshot_name(2), "cannot write"},
                 [&] { save(folder.path(), 2, &first); });
    setrlimit(RLIMIT_FSIZE, &old);
    EXPECT_EQ(load_manifest(folder.path())->content.get_int("update"), 1);
    EXPECT_TRUE(remove_unnamed(folder.path(), first).empty());
  }
  std::signal(SIGXFSZ, handler);
}

TEST(Snapshot, full_disk_while_committing_keeps_the_old_state) {
  TemporaryFolder folder;
  save(folder.path(), 1);
  folder.write("new", "x");
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit old;
  getrlimit(RLIMIT_FSIZE, &old);
  rlimit limit = old;
  limit.rlim_cur = 50;
  setrlimit(RLIMIT_FSIZE, &limit);
  expect_error(ErrorKind::system, {kManifestName, "cannot write"},
               [&] { commit_manifest(folder.path(), Json::object(), {"new"}); });
  setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(load_manifest(folder.path())->content.get_int("update"), 1);
}

/// Continues from the last committed state and saves for ever.
[[noreturn]] void save_until_killed(const std::string& folder) {
  try {
    std::optional<Manifest> manifest = load_manifest(folder);
    remove_unnamed(folder, manifest ? *manifest : Manifest{});
    for (int64_t update = manifest ? manifest->content.get_int("update") : 0;;) {
      ++update;
      manifest = save(folder, update, manifest ? &*manifest : nullptr);
      remove_unnamed(folder, *manifest);
    }
  } catch (const std::exception&) {
    _exit(1);
  }
}

TEST(Snapshot, killed_at_random_moments_the_last_commit_always_loads) {
  TemporaryFolder folder;
  std::mt19937_64 random(11);
  int64_t last = 0;
  for (int round = 0; round < 60; ++round) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) save_until_killed(folder.path());
    usleep(static_cast<useconds_t>(random() % 20'000));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the saving process failed by itself";
    const std::optional<Manifest> manifest = load_manifest(folder.path());
    if (!manifest) {
      EXPECT_EQ(last, 0);
      continue;
    }
    const int64_t update = manifest->content.get_int("update");
    EXPECT_GE(update, last);
    last = update;
    const auto file = SafetensorsFile::open(folder / snapshot_name(update));
    float first = 0;
    std::memcpy(&first, file.info("x").bytes.data(), sizeof first);
    EXPECT_EQ(first, static_cast<float>(update));
  }
  EXPECT_GT(last, 10);  // the processes did save
}

}  // namespace
}  // namespace heddle
