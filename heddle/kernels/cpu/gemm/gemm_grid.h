// How a product is spread over the threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "heddle/kernels/cpu/gemm/gemm_block.h"

namespace heddle::cpu {

/// How many parts of a size n needs.
inline int64_t parts_of(int64_t n, int64_t size) { return n / size + (n % size != 0); }
inline int64_t round_up(int64_t n, int64_t step) { return parts_of(n, step) * step; }

/// Sizes that a grid follows.
struct GemmSizes {
  int64_t m;       ///< rows
  int64_t panels;  ///< of columns
  int64_t inner;   ///< elements of the inner dimension, filled up
};

/// What each block packs for itself.
struct BlockPacks {
  bool rows = false;    ///< of a
  bool panels = false;  ///< of b, too
};

/// How the work of a product is cut: blocks of rows times ranges of panels. Bits do not depend on
/// it (GemmCode).
struct GemmGrid {
  int64_t rows = 0, row_blocks = 0, range = 0, ranges = 0;

  GemmGrid(const GemmCode& code, const GemmSizes& sizes, BlockPacks packs, int64_t threads) {
    if (packs.rows) {
      balance(code, sizes, packs.panels, threads);
      return;
    }
    const int64_t wanted = threads == 1 ? 1 : 8 * threads;
    rows = std::min(round_up(sizes.m, code.group_rows), code.block_rows);
    row_blocks = parts_of(sizes.m, rows);
    ranges = std::clamp<int64_t>(wanted / row_blocks, 1, sizes.panels);
    range = parts_of(sizes.panels, ranges);
    // Sums that grow in c chunk by chunk of the inner dimension stay in the second-level cache
    // meanwhile: measured in f32, whose rows need no copy for each range.
    if (sizes.inner > code.inner_chunk && code.packed == DType::f32 && !code.keeps_sums) {
      constexpr int64_t kSums = 128 << 10;  // bytes
      const int64_t of_panel = rows * code.columns * static_cast<int64_t>(sizeof(float));
      range = std::clamp<int64_t>(kSums / of_panel, 1, range);
    }
    // A row or two go through four panels at a time, where there are some for each thread.
    constexpr int64_t kTogether = 4;
    if (sizes.m <= 2 && threads > 1 && sizes.panels >= 2 * kTogether * threads) {
      range = std::max<int64_t>(1, range / (2 * kTogether)) * kTogether;
    }
    ranges = parts_of(sizes.panels, range);
  }

 private:
  // Blocks that pack their own rows: tall ones, so that few of them read a part of b, that keep all
  // threads busy. Where they pack their panels too, all of their sums stay in the second cache.
  void balance(const GemmCode& code, const GemmSizes& sizes, bool packs_both, int64_t threads) {
    // Products that take as long as packing an element.
    const int64_t packing = packs_both ? 64 : 10;
    constexpr int64_t kBlocks = 4;  // for each thread: more balance nothing better
    const int64_t groups = parts_of(sizes.m, code.group_rows);
    const int64_t most_rows = packs_both ? code.of_both.rows : code.block_rows;
    const int64_t tallest = std::min(groups, most_rows / code.group_rows);
    int64_t least = std::numeric_limits<int64_t>::max();
    const int64_t most_ranges = packs_both ? sizes.panels : kBlocks * threads;
    for (int64_t q = 1; q <= std::min(sizes.panels, most_ranges); ++q) {
      const int64_t width = parts_of(sizes.panels, q), columns = width * code.columns;
      for (int64_t p = parts_of(groups, tallest); p <= groups; ++p) {
        const int64_t height = parts_of(groups, p) * code.group_rows;
        if (packs_both && height * columns > code.of_both.sums) continue;
        const int64_t blocks = parts_of(sizes.m, height) * parts_of(sizes.panels, width);
        const int64_t packed = packs_both ? height + columns : height;
        const int64_t time = parts_of(blocks, threads) * (height * columns + packing * packed);
        if (time < least) {
          least = time, rows = height, row_blocks = parts_of(sizes.m, height);
          range = width, ranges = parts_of(sizes.panels, width);
        }
        if (blocks >= kBlocks * threads) break;
      }
    }
  }
};

}  // namespace heddle::cpu
