// Files of a new model are made beside those of the old one and change places with them.
#include "heddle/infer/loading/model_folder.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <vector>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/infer/loading/adapter.h"
#include "heddle/infer/loading/loaded_model.h"
#include "heddle/infer/loading/sentence_modules.h"
#include "heddle/io/tensor_file.h"
#include "heddle/text/known_words.h"

namespace heddle {
namespace {

using Names = std::vector<std::string>;

// Temporary folders: of the files to come, and of those that they replace.
constexpr const char* kMade = "export";
constexpr const char* kReplaced = "replaced";

// A folder in the model's own, on the same disk, that goes when this does.
class TemporaryPart {
 public:
  TemporaryPart(const std::string& folder, const char* name)
      : path_(temporary_name(join_path(folder, name))) {
    make_directories(path_);
  }
  ~TemporaryPart() {
    std::error_code ignored;  // what is left has a temporary's name
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryPart(const TemporaryPart&) = delete;
  TemporaryPart& operator=(const TemporaryPart&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Without what killed exports have left.
Names names_in(const std::string& path) {
  Names names;
  if (!path_exists(path)) return names;
  names = list_directory(path);
  std::erase_if(names, [](const std::string& name) { return is_temporary_name(name); });
  return names;
}

enum class ConfigComes { first, last };

void move_files(const std::string& from, const std::string& to, Names names, ConfigComes comes) {
  const bool is_first = comes == ConfigComes::first;
  std::stable_partition(names.begin(), names.end(),
                        [&](const std::string& name) { return (name == kConfigName) == is_first; });
  for (const std::string& name : names) {
    const std::string source = join_path(from, name), target = join_path(to, name);
    if (std::rename(source.c_str(), target.c_str()) != 0) {
      fail_errno(fmt::format("cannot move {} to it", source), target, errno);
    }
  }
  sync_directory(is_first ? from : to);
}

// What stood there comes back, and nothing else stays.
void put_back(const std::string& path, const std::string& aside, const Names& old) {
  for (const std::string& name : names_in(path)) {
    const bool is_new = std::find(old.begin(), old.end(), name) == old.end();
    if (is_new || path_exists(join_path(aside, name))) remove_path(join_path(path, name));
  }
  move_files(aside, path, names_in(aside), ConfigComes::last);
}

// Gives the folder with the old files.
std::string replace_files(const std::string& path, const std::string& made) {
  const Names old = names_in(path);
  const std::string aside = temporary_name(join_path(path, kReplaced));
  make_directories(aside);
  try {
    move_files(path, aside, old, ConfigComes::first);
    move_files(made, path, names_in(made), ConfigComes::last);
  } catch (...) {
    put_back(path, aside, old);
    std::error_code ignored;  // only what is empty goes
    std::filesystem::remove(aside, ignored);
    throw;
  }
  return aside;
}

// Temporary files and folders of processes that are no more: those that live have not claimed the
// folder.
void remove_leftovers(const std::string& path) {
  for (const std::string& name : list_directory(path)) {
    if (is_temporary_name(name)) remove_path(join_path(path, name));
  }
}

void check_may_write(const std::string& path, const std::string& source, bool overwrite) {
  std::error_code none_there;  // where `path` does not exist yet
  check(!path.empty(), ErrorKind::usage, "the folder to write has no name; name one");
  check(!std::filesystem::equivalent(path, source, none_there), ErrorKind::usage,
        "{}: the model itself is there; choose another folder", path);
  const Names names = names_in(path);
  if (names.empty()) return;
  check(overwrite, ErrorKind::usage,
        "{}: it is not empty; choose another folder, or replace the model there with `overwrite`",
        path);
  const Names of_sentences = sentence_entries(path);
  for (const std::string& name : names) {
    check(is_model_file(name) || std::ranges::count(of_sentences, name) > 0, ErrorKind::usage,
          "{}: '{}' is no file of a model, so this folder is not replaced; choose another, or move "
          "it elsewhere",
          path, name);
  }
}

}  // namespace

bool is_model_file(const std::string& name) {
  return name == kConfigName || name == kAdapterConfigName || name == KnownWords::kFileName ||
         name.ends_with(".safetensors") || name == std::string(kWeightsName) + ".index.json" ||
         std::ranges::count(files_beside_weights(), name) > 0;
}

NewModelFolder::NewModelFolder(const std::string& path, const std::string& source, bool overwrite)
    : path_((check_may_write(path, source, overwrite), path)), claim_(path) {
  check_may_write(path, source, overwrite);  // another may have written since
}

void NewModelFolder::write(const std::function<void(const std::string&)>& writer) {
  std::string old;
  {
    const TemporaryPart made(path_, kMade);
    writer(made.path());
    old = replace_files(path_, made.path());
  }
  remove_path(old);
  if (claim_.is_exclusive()) remove_leftovers(path_);
}

}  // namespace heddle
