// The shapes of AMX's tiles, and a guard against what GCC does not know of their loads.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>

#include <cstdint>

#pragma GCC push_options
#pragma GCC target("amx-tile")

namespace heddle::cpu {
namespace {

struct alignas(64) TileShapes {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

// GCC 12's tile intrinsics do not tell the compiler that they read memory.
inline void memory_is_read() { __asm__ volatile("" ::: "memory"); }

/// Tiles 0-3 for sums (upper rows 0 and 1, lower rows 2 and 3), 4 and 5 for rows of a, 6 and 7 of
/// b; `upper` and `lower` are rows of a (lower may be 0: then its tiles are not to be used). It
/// costs some 200 cycles.
inline void shape_tiles(int64_t upper, int64_t lower) {
  TileShapes s;
  for (int i = 0; i < 8; ++i) {
    s.row_bytes[i] = 64;
    s.rows[i] = 16;
  }
  s.rows[0] = s.rows[1] = s.rows[4] = static_cast<uint8_t>(upper);
  if (lower > 0) s.rows[2] = s.rows[3] = s.rows[5] = static_cast<uint8_t>(lower);
  memory_is_read();
  _tile_loadconfig(&s);
}

}  // namespace
}  // namespace heddle::cpu

#pragma GCC pop_options
#endif
