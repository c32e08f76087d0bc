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

/// Whether the bytes begin as an archive does.
bool is_zip(std::span<const std::byte> bytes);

/// The files of an archive in the order of its directory, where they lie; nothing is copied or
/// unpacked. Compares the directory (zip64 too) with what stands before each file. `path` opens
/// messages; `bytes` must outlive the entries.
/// Errors: data for anything cut short, out of range, overlapping, named twice, packed or
/// encrypted.
std::vector<ZipEntry> read_zip(std::span<const std::byte> bytes, const std::string& path);

/// Errors: data if the bytes have another checksum than the archive states.
void verify_entry(const ZipEntry& entry, const std::string& path);

}  // namespace heddle
