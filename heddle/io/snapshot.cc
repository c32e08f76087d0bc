// The manifest of a run's state: commit, verify, clean up.
#include "heddle/io/snapshot.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"

namespace heddle {

namespace {

constexpr int64_t kFormat = 1;
constexpr const char* kAltered = "it was altered or damaged after the run saved it";

/// Refuses names that lead out of the folder.
void check_name(const std::string& name, const std::string& manifest_path) {
  const std::filesystem::path path(name);
  bool is_inside = !name.empty() && path.is_relative() && path.lexically_normal() == path;
  is_inside = is_inside && *path.begin() != ".." && *path.begin() != "." && path.has_filename();
  check(is_inside, ErrorKind::data, "{}: the name '{}' is no file below the manifest's folder",
        manifest_path, name);
}

const ManifestFile* find_file(const Manifest* manifest, const std::string& name) {
  if (manifest == nullptr) return nullptr;
  const auto found = std::ranges::find(manifest->files, name, &ManifestFile::name);
  return found == manifest->files.end() ? nullptr : &*found;
}

Json to_json(const Manifest& manifest) {
  Json json =
      Json::object({{"format", kFormat}, {"content", manifest.content}, {"files", Json::array()}});
  for (const ManifestFile& file : manifest.files) {
    json["files"].push_back(
        Json::object({{"name", file.name}, {"bytes", file.bytes}, {"xxh64", file.checksum}}));
  }
  return json;
}

void verify_file(const std::string& folder, const ManifestFile& file) {
  const std::string path = join_path(folder, file.name);
  check(path_exists(path), ErrorKind::data,
        "{}: the file is missing; {} names it, so the state of this run is not whole", path,
        join_path(folder, kManifestName));
  const int64_t bytes = file_size(path);
  check(bytes == file.bytes, ErrorKind::data, "{}: has {} bytes but {} were saved; {}", path, bytes,
        file.bytes, kAltered);
  const std::string sum = checksum_file(path);
  check(sum == file.checksum, ErrorKind::data, "{}: has checksum {} but {} was saved; {}", path,
        sum, file.checksum, kAltered);
}

}  // namespace

bool Manifest::names(const std::string& name) const { return find_file(this, name) != nullptr; }

Manifest commit_manifest(const std::string& folder, const Json& content,
                         const std::vector<std::string>& names, const Manifest* previous) {
  const std::string manifest_path = join_path(folder, kManifestName);
  Manifest manifest{content, {}};
  std::set<std::string> folders = {folder};
  for (const std::string& name : names) {
    check_name(name, manifest_path);
    const std::string path = join_path(folder, name);
    const ManifestFile* known = find_file(previous, name);
    if (known != nullptr) {
      check(file_size(path) == known->bytes, ErrorKind::data,
            "{}: has {} bytes but {} were saved; {}", path, file_size(path), known->bytes,
            kAltered);
      manifest.files.push_back(*known);
      continue;
    }
    sync_file(path);
    folders.insert(parent_path(path));
    manifest.files.push_back({name, file_size(path), checksum_file(path)});
  }
  for (const std::string& each : folders) sync_directory(each);
  Json json = to_json(manifest);
  json["xxh64"] = checksum(json.dump());
  write_file_atomic(manifest_path, json.dump(1) + "\n");
  return manifest;
}

std::optional<Manifest> load_manifest(const std::string& folder) {
  const std::string path = join_path(folder, kManifestName);
  if (!path_exists(path)) return std::nullopt;
  Json json = Json::load(path);
  const std::string sum = json.get_string("xxh64", path);
  json.erase("xxh64");
  check(sum == checksum(json.dump()), ErrorKind::data, "{}: does not match its checksum {}; {}",
        path, sum, kAltered);
  const int64_t format = json.get_int("format", path);
  check(format == kFormat, ErrorKind::data, "{}: has format {}; this heddle reads format {}", path,
        format, kFormat);
  Manifest manifest{json.at("content", path), {}};
  for (const Json& entry : json.at("files", path).as_array(path + ": files")) {
    manifest.files.push_back({entry.get_string("name", path), entry.get_int("bytes", path),
                              entry.get_string("xxh64", path)});
    check_name(manifest.files.back().name, path);
    verify_file(folder, manifest.files.back());
  }
  return manifest;
}

std::vector<std::string> remove_unnamed(
    const std::string& folder, const Manifest& manifest,
    const std::function<bool(const std::string& name)>& is_ours) {
  namespace fs = std::filesystem;
  std::set<std::string> kept = {kManifestName, kLockName};
  for (const ManifestFile& file : manifest.files) kept.insert(file.name);
  std::vector<std::string> unnamed;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().lexically_relative(folder).string();
    const bool is_folder = it->is_directory() && !it->is_symlink();
    if (is_folder || kept.contains(name) || (is_ours && !is_ours(name))) continue;
    unnamed.push_back(name);
  }
  if (error) fail_errno("cannot list the folder", folder, error.value());
  std::sort(unnamed.begin(), unnamed.end());
  for (const std::string& name : unnamed) remove_path(join_path(folder, name));
  return unnamed;
}

FolderLock::FolderLock(const std::string& folder)
    : file_(open(join_path(folder, kLockName).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
  if (file_.fd < 0) fail_errno("cannot write", join_path(folder, kLockName), errno);
  // Some network file systems have no locks: working without one beats not working.
  const bool is_taken = flock(file_.fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  check(!is_taken, ErrorKind::usage,
        "{}: another heddle is working here; wait for it, stop it, or choose another folder",
        folder);
}

}  // namespace heddle
