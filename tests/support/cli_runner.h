// Runs the program as a user would: arguments and text in, text and exit code out.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/support/places.h"

namespace heddle::testing {

struct CliResult {
  int exit_code = -1;  ///< 128 + number where a signal ended it, as a shell shows it
  bool timed_out = false;
  double seconds = 0;  ///< since its start
  std::string out, err;
};

struct CliOptions {
  std::string input;                               ///< what stdin holds
  std::map<std::string, std::string> environment;  ///< added to ours, or replacing
  std::filesystem::path folder;                    ///< working directory; ours if empty
  double timeout_seconds = 120;                    ///< after which it is killed, timed_out set
  /// Asked again and again, by what the program has said so far: `signal` is sent once it is true.
  std::function<bool(const CliResult&)> signal_when;
  int signal = 9;
  std::filesystem::path stdout_file;  ///< opened for writing as stdout (e.g. /dev/full) if given
};

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// For signal_when: so long after the start.
inline std::function<bool(const CliResult&)> after_seconds(double seconds) {
  return [seconds](const CliResult& so_far) { return so_far.seconds >= seconds; };
}

/// Runs any program (the first word; found through PATH) and waits for its end.
/// Throws std::runtime_error if it cannot be started.
CliResult run_command(const std::vector<std::string>& words, const CliOptions& options = {});

/// Runs heddle with these arguments.
inline CliResult run_heddle(std::vector<std::string> arguments, const CliOptions& options = {}) {
  arguments.insert(arguments.begin(), kProgram);
  return run_command(arguments, options);
}

/// A folder of its own under the system's temporary folder, removed at the end of the scope.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

/// Writes a file whole (its folders made as needed); throws std::runtime_error if it cannot.
void write_file(const std::filesystem::path& path, const std::string& text);

/// A file's bytes; throws std::runtime_error if it cannot be read.
std::string read_file(const std::filesystem::path& path);

}  // namespace heddle::testing
