// Appending to RUN/log.jsonl, and cutting it back to where a resume begins.
#include "heddle/train/run/run_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"

namespace heddle::train {
namespace {

// The bytes up to the end of the last whole line of the first `bytes`.
int64_t whole_lines(const std::string& path, int64_t bytes) {
  std::string text = read_file(path);
  text.resize(std::min(text.size(), static_cast<size_t>(bytes)));
  const size_t end = text.rfind('\n');
  return end == text.npos ? 0 : static_cast<int64_t>(end) + 1;
}

}  // namespace

RunLog::RunLog(const std::string& path, int64_t bytes)
    : path_(path),
      fd_(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)),
      bytes_(bytes) {
  if (fd_ < 0) fail_errno("cannot write", path, errno);
  try {
    bytes_ = whole_lines(path, bytes);  // to be longer it would be filled up with zeros
    if (ftruncate(fd_, bytes_) != 0) fail_errno("cannot cut", path, errno);
  } catch (...) {
    close(fd_);
    throw;
  }
}

RunLog::~RunLog() { close(fd_); }

void RunLog::write(const Json& line) {
  const std::string text = line.dump() + "\n";
  for (std::string_view rest = text; !rest.empty();) {
    const ssize_t n = ::write(fd_, rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_errno("cannot write", path_, errno);
    rest.remove_prefix(static_cast<size_t>(n));
  }
  bytes_ += static_cast<int64_t>(text.size());
}

void RunLog::sync() const {
  if (fsync(fd_) != 0) fail_errno("cannot write", path_, errno);
}

}  // namespace heddle::train
