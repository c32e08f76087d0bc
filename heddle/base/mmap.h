// A file mapped into memory, read only.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace heddle {

/// The bytes of a file without reading them first: pages come from the disk when touched. The file
/// must not be shortened while mapped (files that heddle writes are replaced, never changed).
/// Errors: data if the file is missing, empty or a directory; system if it cannot be read.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  std::span<const std::byte> bytes() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::span<const std::byte> bytes_;
};

}  // namespace heddle
