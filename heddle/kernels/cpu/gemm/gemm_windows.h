// Windows over pixels as rows of a, read from the pixels themselves: no patches in memory.
//
// A line of windows reads lines of pixels with padding between them. Copied that way, so many
// pixels a line that windows fill it, a window begins `stride` pixels behind the one before,
// from line to line and from image to image; those between the last of a line and the first of
// the next are multiplied too, and dropped.
#pragma once

#include <cstdint>

#include "heddle/kernels/cpu/gemm/gemm_block.h"
#include "heddle/kernels/gemm.h"

namespace heddle::cpu {

/// How windows of images of one size are laid out as rows.
class WindowRows {
 public:
  explicit WindowRows(const GemmWindows& windows);
  /// Of the product, those that are dropped too.
  int64_t rows() const;
  /// Copies what rows [row, row + rows) read of the pixels to memory of this thread, unless it was
  /// the last that did, and tells the block where they lie and which of them c has.
  void take(const Rows& pixels, int64_t row, int64_t rows, GemmBlock& block) const;

 private:
  void copy_lines(const Rows& pixels, int64_t phase, int64_t first, int64_t lines, char* to) const;
  void copy(const Rows& pixels, int64_t row, int64_t rows, GemmBlock& block) const;
  void place(int64_t row, int64_t rows, GemmBlock& block) const;

  uint64_t product_;  // one number for each
  GemmWindows windows_;
  ImageSize kept_;          // windows of an image
  int64_t line_, lines_;    // windows of a line, lines of an image, those that are dropped too
  int64_t phases_;          // lines of pixels that differ by less than the stride
  int64_t line_bytes_ = 0;  // of pixels
};

}  // namespace heddle::cpu
