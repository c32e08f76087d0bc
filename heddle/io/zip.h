// Zip archives whose files are stored as they are, as torch.save writes them; read, not written.
// Source: PKWARE, ".ZIP File Format Specification" 6.3, sections 4.3 to 4.5.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace heddle {

/// A file of an archive.
struct ZipEntry {
  std::string name;
  std::span<const std::byte> bytes;  ///< inside the archive's
  uint32_t crc = 0;                  ///< CRC-32 that the archive states
};

/// The files of an archive, where they lie; nothing is copied or unpacked.
class ZipArchive {
 public:
  /// Whether the bytes begin as an archive does.
  static bool is_archive(std::span<const std::byte> bytes);

  /// Reads the directory (zip64 too) and compares it with what stands before each file. `path`
  /// opens messages; `bytes` must outlive this.
  /// Errors: data for anything cut short, out of range, overlapping, named twice, packed or
  /// encrypted.
  ZipArchive(std::span<const std::byte> bytes, std::string path);

  /// In the order of the directory.
  const std::vector<ZipEntry>& entries() const { return entries_; }
  /// Errors: data if the bytes have another checksum than the archive states.
  void verify(const ZipEntry& entry) const;

 private:
  std::string path_;
  std::vector<ZipEntry> entries_;
};

}  // namespace heddle
