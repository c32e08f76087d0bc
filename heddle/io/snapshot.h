// Saving the state of a run so that a kill at any moment leaves a whole one: files that are written
// once and never changed, and a manifest that names them, whose rename is the commit.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "heddle/base/files/files.h"
#include "heddle/base/json/json.h"

namespace heddle {

/// A file that a manifest names.
struct ManifestFile {
  std::string name;  ///< relative to the manifest's folder: "snapshot-000200.safetensors"
  int64_t bytes = 0;
  std::string checksum;  ///< checksum_file()
};

/// A committed state: the caller's own values and the files that belong to them.
struct Manifest {
  Json content;
  std::vector<ManifestFile> files;

  bool names(const std::string& name) const;
};

/// The name of the manifest in its folder.
inline constexpr const char* kManifestName = "manifest.json";
/// The name of the file that FolderLock holds; it is never removed or moved.
inline constexpr const char* kLockName = "lock";

/// Makes `content` and the named files the state that load_manifest() finds: their data is made
/// durable, then the manifest replaces the old one in one step. Files are written before, complete
/// and under names not used before (write_safetensors(), write_file_atomic()); those that
/// `previous` names already are not read again. Errors: data if a named file is missing, system for
/// a full disk or no permission; the older state then stays.
Manifest commit_manifest(const std::string& folder, const Json& content,
                         const std::vector<std::string>& names, const Manifest* previous = nullptr);

/// The committed state, or nothing if none was ever committed here. Sizes and checksums of all
/// files are verified (at the speed of the disk or memory).
/// Errors: data, naming the file, if the manifest or a file is missing, altered or cut short.
std::optional<Manifest> load_manifest(const std::string& folder);

/// Removes from the folder, and those in it, what killed saves have left: each file that neither
/// the manifest names nor a lock holds, if `is_ours` says so of its name ("sub/file"); null: of
/// all. Gives the names of the removed ones.
std::vector<std::string> remove_unnamed(
    const std::string& folder, const Manifest& manifest,
    const std::function<bool(const std::string& name)>& is_ours = nullptr);

/// Keeps a second process from working on the same folder, as long as it lives and the process
/// does. Errors: usage if another process holds the folder; system if it cannot be written.
class FolderLock {
 public:
  explicit FolderLock(const std::string& folder);

 private:
  Descriptor file_;
};

}  // namespace heddle
