// Appending to RUN/log.jsonl, and cutting it back to where a resume begins.
#include "heddle/train/run_log.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "heddle/base/files.h"

namespace heddle::train {

RunLog::RunLog(const std::string& path, int64_t bytes) : path_(path), bytes_(bytes) {
  file_ = std::fopen(path.c_str(), "ab");
  if (file_ == nullptr) fail_errno("cannot write", path, errno);
  bytes_ = std::min(bytes, file_size(path));  // to be longer it would be filled up with zeros
  if (ftruncate(fileno(file_), bytes_) != 0) {
    const int error = errno;
    std::fclose(file_);
    fail_errno("cannot cut", path, error);
  }
}

RunLog::~RunLog() { std::fclose(file_); }

void RunLog::write(const Json& line) {
  const std::string text = line.dump() + "\n";
  if (std::fwrite(text.data(), 1, text.size(), file_) != text.size() || std::fflush(file_) != 0) {
    fail_errno("cannot write", path_, errno);
  }
  bytes_ += static_cast<int64_t>(text.size());
}

}  // namespace heddle::train
