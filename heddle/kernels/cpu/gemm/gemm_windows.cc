// Lines of pixels with their padding, and which rows of a product are windows.
#include "heddle/kernels/cpu/gemm/gemm_windows.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "heddle/kernels/cpu/gemm/gemm_grid.h"
#include "heddle/kernels/cpu/scratch.h"

namespace heddle::cpu {
namespace {

uint64_t new_product() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

}  // namespace

WindowRows::WindowRows(const GemmWindows& windows)
    : product_(new_product()), windows_(windows), kept_(windows.outputs()) {
  const auto& [kernel, stride, padding] = windows_.options;
  line_ = parts_of(windows_.size.width + padding, stride);
  lines_ = parts_of(windows_.size.height + padding, stride);
  phases_ = std::min(kernel, stride);
  line_bytes_ = line_ * stride * windows_.channels * size_of(DType::bf16);
}

int64_t WindowRows::rows() const {
  if (windows_.images == 0) return 0;
  return ((windows_.images - 1) * lines_ + kept_.height - 1) * line_ + kept_.width;
}

// Of a phase: every stride-th line of each image, `lines` of them from `first` on, counted over
// all images.
void WindowRows::copy_lines(const Rows& pixels, int64_t phase, int64_t first, int64_t lines,
                            char* to) const {
  const auto& [kernel, stride, padding] = windows_.options;
  const auto& [height, width] = windows_.size;
  const int64_t bytes = width * windows_.channels * size_of(DType::bf16);
  for (int64_t l = first; l < first + lines; ++l, to += line_bytes_) {
    const int64_t image = l / lines_, y = l % lines_ * stride + phase - padding;
    const bool is_inside = image < windows_.images && y >= 0 && y < height;
    if (is_inside) std::memcpy(to, pixels.slice((image * height + y) * width, 1).data, bytes);
    std::memset(to + (is_inside ? bytes : 0), 0, line_bytes_ - (is_inside ? bytes : 0));
  }
}

void WindowRows::place(int64_t row, int64_t rows, GemmBlock& block) const {
  auto* const placed = scratch<PlacedRow, 1>(rows);
  for (int64_t i = 0; i < rows;) {
    const int64_t x = (row + i) % line_, line = (row + i) / line_, y = line % lines_;
    const bool is_kept = x < kept_.width && y < kept_.height;
    const int64_t to = (line / lines_ * kept_.height + y) * kept_.width + x;
    const int64_t count = std::min(rows - i, (x < kept_.width ? kept_.width : line_) - x);
    for (int64_t j = 0; j < count; ++j, ++i) {
      placed[i] = {static_cast<int32_t>(is_kept ? to + j : -1), static_cast<int32_t>(count - j)};
    }
  }
  block.placed = placed;
}

void WindowRows::copy(const Rows& pixels, int64_t row, int64_t rows, GemmBlock& block) const {
  const auto& [kernel, stride, padding] = windows_.options;
  const int64_t first = row / line_, last = (row + rows - 1) / line_;
  const int64_t lines = last - first + 1 + (kernel - 1) / stride;
  const int64_t pixel = windows_.channels * size_of(DType::bf16), before = padding * pixel;
  // Where the last window's line is filled up, numbers that are some are multiplied with zeros.
  const int64_t behind = windows_.line() * size_of(DType::bf16);
  const int64_t size = before + phases_ * lines * line_bytes_;
  thread_local Buffer memory;
  char* const to = memory.reserve(size + behind);
  std::memset(to, 0, before);
  std::memset(to + size, 0, behind);
  for (int64_t phase = 0; phase < phases_; ++phase) {
    copy_lines(pixels, phase, first, lines, to + before + phase * lines * line_bytes_);
  }
  block.a = to + (row - first * line_) * stride * pixel;
  block.a_stride = stride * windows_.channels;
  block.run = windows_.line();
  auto* const starts = scratch<int64_t, 1>(kernel);
  for (int64_t r = 0; r < kernel; ++r) {
    starts[r] = (r % stride * lines + r / stride) * line_bytes_;
  }
  block.starts = starts;
  place(row, rows, block);
}

void WindowRows::take(const Rows& pixels, int64_t row, int64_t rows, GemmBlock& block) const {
  struct Copied {
    uint64_t product = 0;
    int64_t row = 0, rows = 0;
    GemmBlock block = {};
  };
  thread_local Copied last;  // the next block may be of the same rows, and other columns
  if (last.product != product_ || last.row != row || last.rows != rows) {
    last.product = 0;  // of none, should there be no memory
    copy(pixels, row, rows, last.block);
    last.product = product_, last.row = row, last.rows = rows;
  }
  block.a = last.block.a, block.a_stride = last.block.a_stride;
  block.run = last.block.run, block.starts = last.block.starts;
  block.placed = last.block.placed;
}

}  // namespace heddle::cpu
