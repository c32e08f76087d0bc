// A file mapped into memory, and what is done if it changes meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace heddle {

/// What may be done to the bytes of a mapped file.
enum class Mapping : uint8_t {
  read_only,
  own_copy,  ///< writing changes the memory of this process, never the file: the system copies a
             ///< page when it is first written to
};

/// The bytes of a file without reading them first: pages come from the disk when touched. The file
/// must not be shortened while mapped (files that heddle writes are replaced, never changed); it
/// may be removed. Errors: data if the file is missing, empty or a directory; system if it cannot
/// be read.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path, Mapping mapping = Mapping::read_only);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  std::span<const std::byte> bytes() const { return bytes_; }
  /// The same bytes. Errors: internal if the mapping is read only.
  std::span<std::byte> writable_bytes();
  size_t size() const { return bytes_.size(); }
  const std::string& path() const { return path_; }
  Mapping mapping() const { return mapping_; }

 private:
  std::string path_;
  std::span<std::byte> bytes_;
  Mapping mapping_ = Mapping::read_only;
};

/// To be called before work is done with what files hold: errors if a file that is mapped was
/// written to since it was opened. Costs a system call (fstat, 0.3 µs) a file. A file that was
/// removed, or replaced by another, has not changed.
/// Errors: data, naming the file, with its size then and now.
void check_mapped_files();

/// From now on a program that touches bytes which a mapped file no longer has ends with a message
/// that names the file and exit code 3 (data), rather than by SIGBUS without a word. Any other
/// SIGBUS ends it as before. Calling it again changes nothing.
void explain_cut_files();

}  // namespace heddle
