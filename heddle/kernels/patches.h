// Kernels of windows over the pixels of images: patches and the largest pixels.
#pragma once

#include <cmath>
#include <vector>

#include "heddle/kernels/family.h"
#include "heddle/tensor/image_size.h"

namespace heddle {

/// Square windows of kernel * kernel pixels, `stride` pixels apart, over images with `padding`
/// pixels around them; those that do not fit whole are left out.
struct WindowOptions {
  int64_t kernel = 1, stride = 1, padding = 0;
  /// Along a side of so many pixels; below 1 if none fits.
  int64_t windows(int64_t pixels) const {
    const int64_t room = pixels + 2 * padding - kernel;
    return room < 0 ? 0 : room / stride + 1;
  }
  friend bool operator==(const WindowOptions&, const WindowOptions&) = default;
};

/// Images lie end to end, each row by row, a pixel a row of x; so do their windows in y.
struct WindowArgs {
  Rows x = {};  ///< [pixels, channels], contiguous
  Rows y = {};  ///< [windows, kernel * kernel * channels], or [windows, channels] of a pool
  const ImageSize* sizes = nullptr;  ///< [images], in pixels
  int64_t images = 0;
  WindowOptions options = {};
  /// Of a pool: which of the pixels of its window each element is, counted row by row with those
  /// of the padding. [windows, channels]
  uint8_t* chosen = nullptr;
};

inline Work work_of(const WindowArgs& a) {
  return {bytes_of(a.x) + bytes_of(a.y) + (a.chosen == nullptr ? 0 : a.y.rows * a.y.width), 0};
}

namespace definition {

/// Calls f(window, place in the window, pixel) for each pixel of each window; of those in the
/// padding pixel is -1.
template <class F>
void for_windows(const WindowArgs& a, const F& f) {
  const WindowOptions& o = a.options;
  int64_t window = 0, first = 0;
  for (int64_t i = 0; i < a.images; first += a.sizes[i].height * a.sizes[i].width, ++i) {
    const auto [height, width] = a.sizes[i];
    for (int64_t top = 0; top < o.windows(height); ++top) {
      for (int64_t left = 0; left < o.windows(width); ++left, ++window) {
        for (int64_t place = 0; place < o.kernel * o.kernel; ++place) {
          const int64_t row = top * o.stride - o.padding + place / o.kernel;
          const int64_t column = left * o.stride - o.padding + place % o.kernel;
          const bool is_inside = row >= 0 && row < height && column >= 0 && column < width;
          f(window, place, is_inside ? first + row * width + column : -1);
        }
      }
    }
  }
}
inline void patch_rows(const WindowArgs& a) {
  for_windows(a, [&](int64_t window, int64_t place, int64_t pixel) {
    for (int64_t c = 0; c < a.x.width; ++c) {
      set_element(a.y, window, place * a.x.width + c, pixel < 0 ? 0 : element(a.x, pixel, c));
    }
  });
}
/// Sums in f32, then rounds: the same element may get several.
template <class F>
void sum_of_windows(const WindowArgs& a, const F& part) {
  std::vector<double> sums(static_cast<size_t>(a.x.rows * a.x.width));
  for_windows(a, [&](int64_t window, int64_t place, int64_t pixel) {
    for (int64_t c = 0; c < a.x.width && pixel >= 0; ++c) {
      sums[static_cast<size_t>(pixel * a.x.width + c)] += part(window, place, c);
    }
  });
  fill_elements(a.x,
                [&](int64_t r, int64_t c) { return sums[static_cast<size_t>(r * a.x.width + c)]; });
}
inline void patch_rows_backward(const WindowArgs& a) {
  sum_of_windows(a, [&](int64_t window, int64_t place, int64_t c) {
    return element(a.y, window, place * a.x.width + c);
  });
}
inline void max_pool(const WindowArgs& a) {
  for (int64_t i = 0; i < a.y.rows * a.y.width; ++i) a.chosen[i] = 255;
  for_windows(a, [&](int64_t window, int64_t place, int64_t pixel) {
    for (int64_t c = 0; c < a.x.width && pixel >= 0; ++c) {
      uint8_t& chosen = a.chosen[window * a.y.width + c];
      const double v = element(a.x, pixel, c), best = element(a.y, window, c);
      if (chosen != 255 && !(v > best) && !(std::isnan(v) && !std::isnan(best))) continue;
      chosen = static_cast<uint8_t>(place);
      set_element(a.y, window, c, v);
    }
  });
}
inline void max_pool_backward(const WindowArgs& a) {
  sum_of_windows(a, [&](int64_t window, int64_t place, int64_t c) {
    return a.chosen[window * a.y.width + c] == place ? element(a.y, window, c) : 0;
  });
}

}  // namespace definition

struct PatchKernels {
  /// y = the pixels of each window side by side, zeros where it lies in the padding.
  void (*patch_rows)(const WindowArgs&);
  /// x, written: the sum over the windows that hold a pixel of what they have there, by place.
  void (*patch_rows_backward)(const WindowArgs&);
  /// y = the largest of each window, the first of equals, NaN before all; `chosen`, written.
  void (*max_pool)(const WindowArgs&);
  /// x, written: the sum of y over the windows that chose the pixel.
  void (*max_pool_backward)(const WindowArgs&);

  static PatchKernels of_cpu();
  static void list(const auto& visit) {
    HEDDLE_LIST_KERNEL(PatchKernels, patch_rows);
    HEDDLE_LIST_KERNEL(PatchKernels, patch_rows_backward);
    HEDDLE_LIST_KERNEL(PatchKernels, max_pool);
    HEDDLE_LIST_KERNEL(PatchKernels, max_pool_backward);
  }
};

}  // namespace heddle
