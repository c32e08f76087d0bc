// zlib's CRC-32, block by block on all threads.
#include "heddle/base/files/crc32.h"

#include <zlib.h>

#include <algorithm>
#include <vector>

#include "heddle/base/parallel.h"

namespace heddle {

uint32_t crc32(std::span<const std::byte> bytes) {
  constexpr size_t kBlock = size_t{1} << 22;
  const size_t blocks = (bytes.size() + kBlock - 1) / kBlock;
  std::vector<uLong> sums(blocks);
  const auto block = [&](size_t b) {
    return bytes.subspan(b * kBlock, std::min(kBlock, bytes.size() - b * kBlock));
  };
  parallel_for(static_cast<int64_t>(blocks), [&](int64_t b) {
    const auto part = block(static_cast<size_t>(b));
    sums[b] =
        ::crc32(0, reinterpret_cast<const Bytef*>(part.data()), static_cast<uInt>(part.size()));
  });
  uLong sum = 0;
  for (size_t b = 0; b < blocks; ++b) {
    sum = crc32_combine(sum, sums[b], static_cast<z_off_t>(block(b).size()));
  }
  return static_cast<uint32_t>(sum);
}

}  // namespace heddle
