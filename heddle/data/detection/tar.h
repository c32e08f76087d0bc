// Files in a .tar archive, read where they lie.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>

#include "heddle/base/files/mmap.h"

namespace heddle {

/// An archive that is not compressed, mapped into memory. Copies share it.
struct TarFile {
  std::shared_ptr<const MappedFile> file;
  std::map<std::string, std::span<const std::byte>> members;  ///< plain files, by their names

  /// Reads the headers. Longer names than POSIX's ustar format has are read as GNU or pax have
  /// them. Errors: data for an archive that is cut short or damaged.    Source: POSIX.1-2017, pax.
  static TarFile open(const std::string& path);
};

}  // namespace heddle
