// The cases of windows over images, and of means over them.
#include <fmt/format.h>

#include "heddle/ops/elementwise.h"
#include "heddle/ops/patches.h"
#include "heddle/ops/reduce.h"
#include "tests/ops/case_parts.h"
#include "tests/ops/definitions.h"

namespace heddle {
namespace {

int64_t area(const std::vector<ImageSize>& sizes) {
  int64_t pixels = 0;
  for (const ImageSize& size : sizes) pixels += size.height * size.width;
  return pixels;
}

// Output by output: f(image's first pixel, its size, row and column of the window's corner, which
// may lie outside).
void each_window(
    const std::vector<ImageSize>& sizes, const WindowOptions& o,
    const std::function<void(int64_t first, ImageSize size, int64_t row, int64_t column)>& f) {
  int64_t first = 0;
  for (const ImageSize& size : sizes) {
    for (int64_t row = -o.padding; row + o.kernel <= size.height + o.padding; row += o.stride) {
      for (int64_t c = -o.padding; c + o.kernel <= size.width + o.padding; c += o.stride) {
        f(first, size, row, c);
      }
    }
    first += size.height * size.width;
  }
}

auto plain_patches(const std::vector<ImageSize>& sizes, const WindowOptions& o, int64_t channels) {
  return [=](const definition::Inputs& in) {
    definition::Doubles y;
    each_window(sizes, o, [&](int64_t first, ImageSize size, int64_t row, int64_t column) {
      for (int64_t i = row; i < row + o.kernel; ++i) {
        for (int64_t j = column; j < column + o.kernel; ++j) {
          const bool is_inside = i >= 0 && j >= 0 && i < size.height && j < size.width;
          const int64_t pixel = first + i * size.width + j;
          for (int64_t c = 0; c < channels; ++c) {
            y.push_back(is_inside ? in[0][pixel * channels + c] : 0);
          }
        }
      }
    });
    return y;
  };
}

// Added to the pixels of a pool: the values of a window then lie far apart, and the largest stays
// the largest when one is moved a little.
std::vector<float> heights(const std::vector<ImageSize>& sizes, int64_t channels) {
  std::vector<float> all;
  for (const ImageSize& size : sizes) {
    for (int64_t i = 0; i < size.height * size.width * channels; ++i) {
      const int64_t pixel = i / channels;
      const auto place = static_cast<float>(pixel / size.width % 3 * 3 + pixel % size.width % 3);
      all.push_back(i % 2 == 0 ? 10 * place : -10 * place);
    }
  }
  return all;
}

auto plain_pool(const std::vector<ImageSize>& sizes, const WindowOptions& o, int64_t channels) {
  return [=, added = heights(sizes, channels)](const definition::Inputs& in) {
    definition::Doubles y;
    each_window(sizes, o, [&](int64_t first, ImageSize size, int64_t row, int64_t column) {
      for (int64_t c = 0; c < channels; ++c) {
        double best = -1e30;
        for (int64_t i = std::max<int64_t>(row, 0); i < std::min(row + o.kernel, size.height);
             ++i) {
          for (int64_t j = std::max<int64_t>(column, 0);
               j < std::min(column + o.kernel, size.width); ++j) {
            const int64_t at = (first + i * size.width + j) * channels + c;
            best = std::max(best, double(in[0][at]) + added[at]);
          }
        }
        y.push_back(best);
      }
    });
    return y;
  };
}

}  // namespace

void add_patch_cases(std::vector<OpCase>& all, const OpSizes& z) {
  const std::vector<ImageSize> sizes = z.images;
  for (const WindowOptions o : {WindowOptions{3, 1, 1}, WindowOptions{2, 2, 0},
                                WindowOptions{3, 2, 1}, WindowOptions{1, 2, 0},
                                WindowOptions{2, 1, 3}, WindowOptions{2, 3, 0}}) {
    const std::string variant = fmt::format("{}_by_{}_padded_{}", o.kernel, o.stride, o.padding);
    for (const int64_t channels : {z.channels, z.channels + 18}) {
      const Shape pixels{area(sizes), channels};
      all.push_back(
          {.op = "patch_rows",
           .variant = fmt::format("{}_of_{}", variant, channels),
           .shapes = {pixels},
           .function = [=](const Tensors& x) { return Tensors{patch_rows(x[0], sizes, o)}; },
           .plain = plain_patches(sizes, o, channels)});
      if (o.padding >= o.kernel) continue;
      all.push_back(
          {.op = "max_pool",
           .variant = fmt::format("{}_of_{}", variant, channels),
           .shapes = {pixels},
           .function =
               [=, added = heights(sizes, channels)](const Tensors& x) {
                 const Tensor far = cast(Tensor::from(added, pixels), x[0].dtype());
                 return Tensors{max_pool(add(x[0], far), sizes, o)};
               },
           .plain = plain_pool(sizes, o, channels)});
    }
  }
  std::vector<int64_t> lengths;
  for (const ImageSize& size : sizes) lengths.push_back(size.height * size.width);
  const Segments segments = Segments::from_lengths(lengths);
  const int64_t channels = z.channels + 18;
  all.push_back(
      {.op = "segment_mean",
       .variant = "images",
       .shapes = {{area(sizes), channels}},
       .function = [=](const Tensors& x) { return Tensors{segment_mean(x[0], segments)}; },
       .plain = [=](const definition::Inputs& in) {
         definition::Doubles y(segments.count() * channels);
         for (int64_t s = 0; s < segments.count(); ++s) {
           for (int64_t i = segments.begin(s) * channels; i < segments.end(s) * channels; ++i) {
             y[s * channels + i % channels] +=
                 in[0][i] / static_cast<double>(segments.length(s));
           }
         }
         return y;
       }});
}

}  // namespace heddle
