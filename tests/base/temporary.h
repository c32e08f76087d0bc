// A folder that lives as long as a test, and a check of an error's kind and words.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "heddle/base/error.h"

namespace heddle {

class TemporaryFolder {
 public:
  /// In memory where there is such a place: thousands of small files take seconds on a disk.
  TemporaryFolder() {
    const char* chosen = std::getenv("TMPDIR");
    const char* folder = chosen ? chosen : access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    std::string name = std::string(folder) + "/heddle-test-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  /// Writes a file and gives its path.
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(*this / name, std::ios::binary) << text;
    return *this / name;
  }

 private:
  std::string path_;
};

/// Runs `action` and expects an Error of the kind whose message holds each of the words.
inline void expect_error(ErrorKind kind, const std::vector<std::string>& words,
                         const std::function<void()>& action) {
  try {
    action();
    ADD_FAILURE() << "no error was thrown; expected one of kind " << error_kind_name(kind);
  } catch (const Error& error) {
    EXPECT_EQ(error_kind_name(error.kind()), std::string(error_kind_name(kind))) << error.what();
    for (const std::string& word : words) {
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos)
          << "'" << word << "' is not in: " << error.what();
    }
  }
}

}  // namespace heddle
