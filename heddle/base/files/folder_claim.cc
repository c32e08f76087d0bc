// The lock of a folder is flock() of the folder itself.
#include "heddle/base/files/folder_claim.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "heddle/base/error.h"

namespace heddle {
namespace {

bool is_still(int folder, const std::string& path) {
  struct stat held, there;
  return fstat(folder, &held) == 0 && stat(path.c_str(), &there) == 0 &&
         held.st_dev == there.st_dev && held.st_ino == there.st_ino;
}

}  // namespace

FolderClaim::FolderClaim(std::string path)
    : path_(std::move(path)), was_there_(path_exists(path_)), folder_(-1) {
  do {
    if (folder_.fd >= 0) close(std::exchange(folder_.fd, -1));
    make_directories(path_);
    folder_.fd = open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder_.fd < 0) fail_errno("cannot open the folder", path_, errno);
    is_exclusive_ = flock(folder_.fd, LOCK_EX | LOCK_NB) == 0;
    check(is_exclusive_ || errno != EWOULDBLOCK, ErrorKind::usage,
          "{}: another heddle is writing here; wait for it, or choose another folder", path_);
  } while (!is_still(folder_.fd, path_));  // the one that made it has just removed it
}

FolderClaim::~FolderClaim() {
  std::error_code ignored;  // only what is empty goes
  if (!was_there_) std::filesystem::remove(path_, ignored);
}

}  // namespace heddle
