// Appending to RUN/log.jsonl, and cutting it back to where a resume begins.
#include "heddle/train/run_log.h"

#include <unistd.h>

#include <cerrno>

#include "heddle/base/error.h"
#include "heddle/base/files.h"
#include "heddle/base/lines.h"

namespace heddle::train {

RunLog::RunLog(const std::string& path, int64_t bytes) : path_(path), bytes_(bytes) {
  file_ = std::fopen(path.c_str(), "ab");
  if (file_ == nullptr) fail_errno("write", path, errno);
  if (ftruncate(fileno(file_), bytes) != 0) fail_errno("cut", path, errno);
}

RunLog::~RunLog() { std::fclose(file_); }

void RunLog::write(const Json& line) {
  const std::string text = line.dump() + "\n";
  if (std::fwrite(text.data(), 1, text.size(), file_) != text.size() || std::fflush(file_) != 0) {
    fail_errno("write", path_, errno);
  }
  bytes_ += static_cast<int64_t>(text.size());
}

double last_logged_seconds(const std::string& path) {
  if (!path_exists(path)) return 0;
  double seconds = 0;
  LineReader lines(path);
  std::string line;
  while (lines.next(line)) {
    try {
      const Json json = Json::parse(line);
      if (const Json* s = json.find("seconds")) seconds = s->as_double();
    } catch (const Error&) {
      break;  // a kill cut the last line short
    }
  }
  return seconds;
}

}  // namespace heddle::train
