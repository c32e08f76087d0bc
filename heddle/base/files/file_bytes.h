// A whole file in memory or mapped, whether it is compressed or not.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace heddle {

/// The bytes of a file for as long as the owner lives: mapped, or unpacked where its name ends with
/// ".gz". Copies share them. An empty file has none.
/// Errors: those of MappedFile and LineReader.
struct FileBytes {
  std::string path;
  std::shared_ptr<const void> owner;
  std::span<const std::byte> bytes;

  explicit FileBytes(std::string file);
};

}  // namespace heddle
