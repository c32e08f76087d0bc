// The one exception type: what kind of mistake, who saw it, what to do.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace heddle {

/// The kind of an error; its value is the exit code of the program.
enum class ErrorKind : int {
  usage = 2,     ///< a wrong flag, command or field
  data = 3,      ///< a file or a text that is not what it should be
  shape = 4,     ///< tensors whose sizes do not fit
  device = 5,    ///< the device lacks what is asked for
  system = 6,    ///< a full disk, no permission, no memory
  ranks = 7,     ///< another of the processes that train together was lost, or has failed
  internal = 70  ///< our own bug
};

/// The name of a kind as it is printed: "usage", "data", ...
const char* error_kind_name(ErrorKind kind);

/// The status of an HTTP response about such an error: 400 and 422 where the request is at fault,
/// 501 where it asks for what the device lacks, 503 where it may succeed later, else 500.
/// Source: RFC 9110, section 15.
int http_status(ErrorKind kind);

/// Everything that goes wrong on purpose is thrown as this.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const { return kind_; }
  int exit_code() const { return static_cast<int>(kind_); }

 private:
  ErrorKind kind_;
};

[[noreturn]] void throw_error(ErrorKind kind, fmt::string_view format, fmt::format_args args);

/// Throws Error(kind, formatted message). The message says who, what was seen, what was needed,
/// and what to do.
template <class... Args>
[[noreturn]] void fail(ErrorKind kind, fmt::format_string<Args...> format, const Args&... args) {
  throw_error(kind, format, fmt::make_format_args(args...));
}

/// fail() unless the condition holds.
template <class... Args>
void check(bool condition, ErrorKind kind, fmt::format_string<Args...> format,
           const Args&... args) {
  if (!condition) [[unlikely]] {
    throw_error(kind, format, fmt::make_format_args(args...));
  }
}

}  // namespace heddle
