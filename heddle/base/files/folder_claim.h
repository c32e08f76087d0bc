// A folder that one process at a time writes.
#pragma once

#include <string>

#include "heddle/base/files/files.h"

namespace heddle {

/// Makes the folder, where there is none, and keeps other processes that claim it out, until the
/// claim or the process ends. It leaves no file: the folder itself is locked. What was made goes
/// again with the claim, if nothing came into it.
class FolderClaim {
 public:
  /// Errors: usage if another process has claimed it; those of make_directories().
  explicit FolderClaim(std::string path);
  ~FolderClaim();
  FolderClaim(const FolderClaim&) = delete;
  FolderClaim& operator=(const FolderClaim&) = delete;

  /// False on file systems that have no locks (some of networks), where others may write too.
  bool is_exclusive() const { return is_exclusive_; }

 private:
  std::string path_;
  bool was_there_;
  bool is_exclusive_ = false;
  Descriptor folder_;
};

}  // namespace heddle
