// Temporary names, folders that appear complete, what lies inside a folder.
#include "heddle/base/files/folders.h"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"

namespace heddle {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kTemporaryMark = ".tmp-";
constexpr size_t kTemporaryDigits = 16;

bool is_below(const fs::path& path, const fs::path& folder) {
  const auto [end, unused] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return end == folder.end() || (end->empty() && std::next(end) == folder.end());
}

}  // namespace

std::string temporary_name(const std::string& path) {
  uint64_t random = 0;
  if (getrandom(&random, sizeof random, 0) != sizeof random) {
    fail_errno("cannot take random bits for a temporary name", path, errno);
  }
  return fmt::format("{}{}{:0{}x}", path, kTemporaryMark, random, kTemporaryDigits);
}

bool is_temporary_name(std::string_view name) {
  const size_t mark = name.rfind(kTemporaryMark);
  if (mark == std::string_view::npos || mark == 0) return false;
  const std::string_view tail = name.substr(mark + kTemporaryMark.size());
  return tail.size() == kTemporaryDigits &&
         tail.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

void write_folder_atomic(const std::string& path,
                         const std::function<void(const std::string& folder)>& writer) {
  const std::string temporary = temporary_name(path);
  try {
    make_directories(temporary);
    writer(temporary);
    sync_directory(temporary);
    if (std::rename(temporary.c_str(), path.c_str()) != 0) {
      fail_errno("cannot write", path, errno);
    }
  } catch (...) {
    std::error_code ignored;  // the error that is under way says more
    fs::remove_all(temporary, ignored);
    throw;
  }
  sync_directory(parent_path(path));
}

bool lies_inside(const std::string& path, const std::string& folder) {
  const auto by_name = [](const std::string& p) { return fs::absolute(p).lexically_normal(); };
  if (is_below(by_name(path), by_name(folder))) return true;
  std::error_code error;
  const fs::path real = fs::weakly_canonical(path, error);
  if (error) return false;
  const fs::path real_folder = fs::weakly_canonical(folder, error);
  return !error && is_below(real, real_folder);
}

}  // namespace heddle
