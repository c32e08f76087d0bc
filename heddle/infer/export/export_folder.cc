// Filling a temporary folder, and changing its files for those that were there.
#include "heddle/infer/export/export_folder.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/infer/loading/model_dir.h"
#include "heddle/io/tensor_file.h"

namespace heddle {
namespace {

using Names = std::vector<std::string>;

/// A folder in the export's own, on the same disk, that goes when this does.
class StagingFolder {
 public:
  StagingFolder(const std::string& folder, const char* name)
      : path_(temporary_name(join_path(folder, name))) {
    make_directories(path_);
  }
  ~StagingFolder() {
    std::error_code ignored;  // what is left has a temporary's name
    std::filesystem::remove_all(path_, ignored);
  }
  StagingFolder(const StagingFolder&) = delete;
  StagingFolder& operator=(const StagingFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

bool is_model_file(const ExportFolder& folder, const std::string& name) {
  return name == kConfigName || name.ends_with(".safetensors") ||
         name == std::string(kWeightsName) + ".index.json" ||
         std::find(folder.names.begin(), folder.names.end(), name) != folder.names.end();
}

// Without what killed exports have left.
Names names_in(const std::string& path) {
  Names names;
  if (!path_exists(path)) return names;
  names = list_directory(path);
  std::erase_if(names, [](const std::string& name) { return is_temporary_name(name); });
  return names;
}

void move_file(const std::string& from, const std::string& to, const std::string& name) {
  const std::string source = join_path(from, name), target = join_path(to, name);
  if (std::rename(source.c_str(), target.c_str()) != 0) {
    fail_errno(fmt::format("cannot move {} to it", source), target, errno);
  }
}

void move_config_first(const std::string& from, const std::string& to, Names names) {
  std::stable_partition(names.begin(), names.end(),
                        [](const std::string& name) { return name == kConfigName; });
  for (const std::string& name : names) move_file(from, to, name);
  sync_directory(from);
}

void move_config_last(const std::string& from, const std::string& to, Names names) {
  std::stable_partition(names.begin(), names.end(),
                        [](const std::string& name) { return name != kConfigName; });
  for (const std::string& name : names) move_file(from, to, name);
  sync_directory(to);
}

// What stood there comes back, and nothing else stays.
void put_back(const std::string& path, const std::string& aside, const Names& old) {
  for (const std::string& name : names_in(path)) {
    const bool is_new = std::find(old.begin(), old.end(), name) == old.end();
    if (is_new || path_exists(join_path(aside, name))) remove_path(join_path(path, name));
  }
  move_config_last(aside, path, names_in(aside));
}

void replace_files(const std::string& path, const std::string& made) {
  const Names old = names_in(path);
  const std::string aside = temporary_name(join_path(path, "replaced"));
  make_directories(aside);
  try {
    move_config_first(path, aside, old);
    move_config_last(made, path, names_in(made));
  } catch (...) {
    put_back(path, aside, old);
    std::error_code ignored;  // only what is empty goes
    std::filesystem::remove(aside, ignored);
    throw;
  }
}

}  // namespace

void check_export_folder(const ExportFolder& folder) {
  const Names names = names_in(folder.path);
  if (names.empty()) return;
  check(folder.overwrite, ErrorKind::usage,
        "{}: it is not empty; choose another folder, or replace the model there with `overwrite`",
        folder.path);
  for (const std::string& name : names) {
    check(is_model_file(folder, name), ErrorKind::usage,
          "{}: '{}' is no file of a model, so this folder is not replaced; choose another, or move "
          "it elsewhere",
          folder.path, name);
  }
}

void write_export_folder(const ExportFolder& folder,
                         const std::function<void(const std::string& folder)>& writer) {
  const bool was_there = path_exists(folder.path);
  make_directories(folder.path);
  try {
    const StagingFolder made(folder.path, "export");
    writer(made.path());
    replace_files(folder.path, made.path());
  } catch (...) {
    std::error_code ignored;  // only what is empty goes
    if (!was_there) std::filesystem::remove(folder.path, ignored);
    throw;
  }
  for (const std::string& name : list_directory(folder.path)) {
    if (is_temporary_name(name)) remove_path(join_path(folder.path, name));
  }
}

}  // namespace heddle
