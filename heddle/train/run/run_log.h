// RUN/log.jsonl: what a training run reports, one JSON object a line.
#pragma once

#include <string>

#include "heddle/base/json/json.h"

namespace heddle::train {

class RunLog {
 public:
  /// Opens the log and cuts it to `bytes`, what the resumed state had written, and there to its
  /// last whole line; a log that somebody made shorter goes on as it is. Errors: system if it
  /// cannot be written.
  RunLog(const std::string& path, int64_t bytes);
  ~RunLog();
  RunLog(const RunLog&) = delete;
  RunLog& operator=(const RunLog&) = delete;

  /// Writes a line through to the file. Errors: system for a full disk.
  void write(const Json& line);
  /// Makes the lines durable: what a state names must not be lost after it. Errors: system.
  void sync() const;
  /// Length of the file in bytes.
  int64_t bytes() const { return bytes_; }

 private:
  std::string path_;
  int fd_;
  int64_t bytes_;
};

}  // namespace heddle::train
