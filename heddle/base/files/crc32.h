// The checksum of zip and gzip files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace heddle {

/// CRC-32 of the bytes (polynomial 0xEDB88320, as in ISO 3309), computed on all threads.
uint32_t crc32(std::span<const std::byte> bytes);

}  // namespace heddle
