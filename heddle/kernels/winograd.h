// Kernels of convolutions with fewer multiplications: windows of 3 x 3 pixels, one apart, by tiles
// of 2 x 2 outputs, whose inputs are 4 x 4 pixels. With d a tile's inputs, g a window's weights and
// o the product by element, the outputs are Aᵀ ((G g Gᵀ) o (Bᵀ d B)) A: over all channels 16
// matrix products of tiles in place of one of windows, 16 multiplications for 36. Source: Lavin and
// Gray 2016, "Fast Algorithms for Convolutional Neural Networks", F(2x2, 3x3).
#pragma once

#include <array>

#include "heddle/kernels/family.h"
#include "heddle/tensor/image_size.h"

namespace heddle {

/// Images lie end to end, each row by row, a pixel a row; so do their tiles, for each of the 16
/// places of a tile those of all images.
struct WinogradArgs {
  Rows pixels = {};  ///< [pixels, channels], bf16, contiguous
  Rows tiles = {};   ///< [16 * (tiles or more), channels]: what is more belongs to no tile. bf16 of
                     ///< inputs and of gradients, f32 of products
  const ImageSize* sizes = nullptr;  ///< [images], of the convolution's inputs, in pixels
  int64_t images = 0;
  int64_t padding = 0;          ///< of the inputs
  const float* bias = nullptr;  ///< [channels], of outputs; may be null
  Rows added = {};              ///< as pixels, to outputs; empty: nothing
  bool relu = false;            ///< of outputs and what is added

  /// What the convolution gives of image i, and in how many tiles.
  ImageSize outputs(int64_t i) const {
    return {sizes[i].height + 2 * padding - 2, sizes[i].width + 2 * padding - 2};
  }
  ImageSize grid(int64_t i) const {
    const ImageSize out = outputs(i);
    return {(out.height + 1) / 2, (out.width + 1) / 2};
  }
};
/// Weights of windows and what G makes of them.
struct WinogradWeightArgs {
  Rows w = {};      ///< [out, 9 * in], the channels of each pixel of a window side by side
  Rows tiles = {};  ///< [16 * out, in], place by place; both bf16, or, of gradients, f32
};

/// Whether convolutions in bf16 from `in` to `out` channels are faster so on this CPU; if `trains`,
/// their gradients.
bool winograd_is_faster(int64_t in, int64_t out, bool trains);

namespace definition {

inline constexpr double kTileB[4][4] = {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}};
inline constexpr double kTileG[4][3] = {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}};
inline constexpr double kTileA[4][2] = {{1, 0}, {1, 1}, {1, -1}, {0, -1}};

/// Calls f(tile, row, column, image's first pixel, its size) for each tile and its 4 x 4 or 2 x 2
/// pixels, of the convolution's inputs or outputs; row and column may lie outside the image.
template <class F>
void for_tiles(const WinogradArgs& a, bool of_outputs, const F& f) {
  int64_t tile = 0, first = 0;
  for (int64_t i = 0; i < a.images; ++i) {
    const ImageSize size = of_outputs ? a.outputs(i) : a.sizes[i], grid = a.grid(i);
    const int64_t before = of_outputs ? 0 : a.padding;
    for (int64_t y = 0; y < grid.height; ++y) {
      for (int64_t x = 0; x < grid.width; ++x, ++tile) {
        f(tile, 2 * y - before, 2 * x - before, first, size);
      }
    }
    first += size.height * size.width;
  }
}
/// Pixel (row, column) of an image, or -1 outside it.
inline int64_t pixel_at(int64_t row, int64_t column, int64_t first, const ImageSize& size) {
  const bool inside = row >= 0 && row < size.height && column >= 0 && column < size.width;
  return inside ? first + row * size.width + column : -1;
}

/// tiles = M p Mᵀ of each tile's pixels p, kSide x kSide of the inputs or the outputs.
template <int64_t kSide>
void transform_tiles(const WinogradArgs& a, const double (&m)[4][kSide], bool of_outputs) {
  const int64_t tiles = a.tiles.rows / 16;
  for_tiles(
      a, of_outputs, [&](int64_t tile, int64_t row, int64_t column, int64_t first, auto size) {
        for (int64_t c = 0; c < a.tiles.width; ++c) {
          for (int64_t place = 0; place < 16; ++place) {
            double sum = 0;
            for (int64_t i = 0; i < kSide * kSide; ++i) {
              const int64_t pixel = pixel_at(row + i / kSide, column + i % kSide, first, size);
              const double weight = m[place / 4][i / kSide] * m[place % 4][i % kSide];
              if (pixel >= 0) sum += weight * element(a.pixels, pixel, c);
            }
            set_element(a.tiles, place * tiles + tile, c, sum);
          }
        }
      });
}
inline void winograd_inputs(const WinogradArgs& a) { transform_tiles(a, kTileB, false); }
inline void winograd_outputs_backward(const WinogradArgs& a) { transform_tiles(a, kTileA, true); }
inline void winograd_outputs(const WinogradArgs& a) {
  const int64_t tiles = a.tiles.rows / 16;
  for_tiles(a, true, [&](int64_t tile, int64_t row, int64_t column, int64_t first, auto size) {
    for (int64_t i = 0; i < 4; ++i) {
      const int64_t pixel = pixel_at(row + i / 2, column + i % 2, first, size);
      for (int64_t c = 0; c < a.tiles.width && pixel >= 0; ++c) {
        double sum = a.bias == nullptr ? 0 : a.bias[c];
        if (a.added.data != nullptr) sum += element(a.added, pixel, c);
        for (int64_t place = 0; place < 16; ++place) {
          sum += kTileA[place / 4][i / 2] * kTileA[place % 4][i % 2] *
                 element(a.tiles, place * tiles + tile, c);
        }
        set_element(a.pixels, pixel, c, a.relu && sum < 0 ? 0 : sum);
      }
    }
  });
}
/// Of a window's pixel i in a place of the tiles.
inline double window_weight(int64_t place, int64_t i) {
  return kTileG[place / 4][i / 3] * kTileG[place % 4][i % 3];
}
inline void winograd_weights(const WinogradWeightArgs& a) {
  const int64_t out = a.w.rows, in = a.tiles.width;
  fill_elements(a.tiles, [&](int64_t r, int64_t c) {
    double sum = 0;
    for (int64_t i = 0; i < 9; ++i) {
      sum += window_weight(r / out, i) * element(a.w, r % out, i * in + c);
    }
    return sum;
  });
}
inline void winograd_weights_backward(const WinogradWeightArgs& a) {
  const int64_t out = a.w.rows, in = a.tiles.width;
  fill_elements(a.w, [&](int64_t r, int64_t column) {
    double sum = 0;
    for (int64_t place = 0; place < 16; ++place) {
      sum += window_weight(place, column / in) * element(a.tiles, place * out + r, column % in);
    }
    return sum;
  });
}

}  // namespace definition

struct WinogradKernels {
  /// tiles = Bᵀ d B of each tile's inputs, zeros outside the image.
  void (*winograd_inputs)(const WinogradArgs&);
  /// pixels = Aᵀ m A of each tile, plus bias and what is added.
  void (*winograd_outputs)(const WinogradArgs&);
  /// tiles = A dy Aᵀ of each tile's outputs.
  void (*winograd_outputs_backward)(const WinogradArgs&);
  /// tiles = G g Gᵀ.
  void (*winograd_weights)(const WinogradWeightArgs&);
  /// w, written: Gᵀ u G.
  void (*winograd_weights_backward)(const WinogradWeightArgs&);

  static WinogradKernels of_cpu();
  static void list(const auto& visit) {
    HEDDLE_LIST_KERNEL(WinogradKernels, winograd_inputs);
    HEDDLE_LIST_KERNEL(WinogradKernels, winograd_outputs);
    HEDDLE_LIST_KERNEL(WinogradKernels, winograd_outputs_backward);
    HEDDLE_LIST_KERNEL(WinogradKernels, winograd_weights);
    HEDDLE_LIST_KERNEL(WinogradKernels, winograd_weights_backward);
  }
};

inline Work work_of(const WinogradArgs& a) {
  return {bytes_of(a.pixels) + bytes_of(a.tiles) + bytes_of(a.added), 0};
}
inline Work work_of(const WinogradWeightArgs& a) { return {bytes_of(a.w) + bytes_of(a.tiles), 0}; }

}  // namespace heddle
