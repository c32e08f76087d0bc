// Files in a .tar archive, read where they lie.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>

namespace heddle {

/// An archive, mapped into memory, or unpacked there if it is gzip's. Copies share it.
struct TarFile {
  std::shared_ptr<const void> owner;                          ///< of the members' bytes
  std::map<std::string, std::span<const std::byte>> members;  ///< plain files, by their names

  /// Reads the headers. Longer names than POSIX's ustar format has are read as GNU or pax have
  /// them. Errors: those of FileBytes; data for an archive that is cut short or damaged.
  /// Source: POSIX.1-2017, pax.
  static TarFile open(const std::string& path);
};

}  // namespace heddle
