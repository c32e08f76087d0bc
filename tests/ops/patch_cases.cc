// The cases of windows over images, of means over them, and of what their models do with tokens.
#include <fmt/format.h>

#include <cstdlib>

#include "heddle/ops/attention.h"
#include "heddle/ops/elementwise.h"
#include "heddle/ops/embedding.h"
#include "heddle/ops/images/channel_rows.h"
#include "heddle/ops/images/patches.h"
#include "heddle/ops/images/windows.h"
#include "heddle/ops/norm.h"
#include "heddle/ops/reduce.h"
#include "heddle/ops/shape.h"
#include "tests/ops/case_parts.h"
#include "tests/ops/definitions.h"
#include "tests/ops/references.h"

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

// linear() of patch_rows(), which have cases of their own.
void add_convolutions(std::vector<OpCase>& all, const OpSizes& z) {
  const std::vector<ImageSize> sizes = z.images;
  const WindowOptions o{3, 2, 1};
  const Shape pixels{area(sizes), z.channels};
  for (const Activation kind : {Activation::none, Activation::relu, Activation::gelu}) {
    // Of ReLU so few outputs that none comes near its kink.
    const int64_t out = kind == Activation::relu ? 2 : z.linear[1];
    const Shape weight{out, 9 * z.channels};
    all.push_back(
        {.op = "convolution",
         .variant = fmt::format("with_activation_{}", static_cast<int>(kind)),
         .shapes = {pixels, weight, {out}},
         .function =
             [=](const Tensors& x) {
               return Tensors{convolution(x[0], sizes, x[1], x[2], o, {.activation = kind})};
             },
         .reference =
             [=](const Tensors& x) {
               return Tensors{linear_reference(patch_rows(x[0], sizes, o), x[1], x[2], kind)};
             },
         .always_f32 = {2}});
  }
  all.push_back(
      {.op = "convolution",
       .variant = "without_bias",
       .shapes = {pixels, {z.linear[1], 9 * z.channels}},
       .function = [=](const Tensors& x) { return Tensors{convolution(x[0], sizes, x[1], {}, o)}; },
       .reference =
           [=](const Tensors& x) {
             return Tensors{linear_reference(patch_rows(x[0], sizes, o), x[1], {})};
           }});
}

// Wide enough to go by fewer multiplications in bf16, where a CPU gains by it.
void add_wide_convolutions(std::vector<OpCase>& all) {
  const std::vector<ImageSize> sizes = {{3, 4}, {2, 2}};
  for (const int64_t padding : {0, 1, 2}) {
    const WindowOptions o{3, 1, padding};
    const std::vector<ImageSize> given = padding == 0 ? std::vector<ImageSize>{{3, 4}} : sizes;
    all.push_back(
        {.op = "convolution",
         .variant = fmt::format("of_many_channels_{}", padding),
         .shapes = {{area(given), 64}, {65, 9 * 64}, {65}},
         .function =
             [=](const Tensors& x) { return Tensors{convolution(x[0], given, x[1], x[2], o)}; },
         .reference =
             [=](const Tensors& x) {
               return Tensors{linear_reference(patch_rows(x[0], given, o), x[1], x[2])};
             },
         .always_f32 = {2}});
  }
}

// What models of images do with rows of tokens.
// Grids padded to windows of 3 x 3, rolled by one and cut, by whole arrays as Swin's own code does
// it: the row of the grids that stands in each row of the windows, or -1.
std::vector<int64_t> cut_windows(const std::vector<ImageSize>& sizes) {
  std::vector<int64_t> rows;
  int64_t first = 0;
  for (const ImageSize& size : sizes) {
    const int64_t height = (size.height + 2) / 3 * 3, width = (size.width + 2) / 3 * 3;
    std::vector<int64_t> padded(static_cast<size_t>(height * width), -1), rolled = padded;
    for (int64_t i = 0; i < size.height * size.width; ++i) {
      padded[static_cast<size_t>(i / size.width * width + i % size.width)] = first + i;
    }
    for (int64_t y = 0; y < height; ++y) {
      for (int64_t x = 0; x < width; ++x) {
        rolled[static_cast<size_t>(y * width + x)] =
            padded[static_cast<size_t>((y + 1) % height * width + (x + 1) % width)];
      }
    }
    for (int64_t i = 0; i < height * width; ++i) {
      const int64_t window = i / 9, y = window / (width / 3) * 3 + i % 9 / 3;
      rows.push_back(rolled[static_cast<size_t>(y * width + window % (width / 3) * 3 + i % 9 % 3)]);
    }
    first += size.height * size.width;
  }
  return rows;
}

void add_windows(std::vector<OpCase>& all, const std::vector<ImageSize>& sizes, int64_t channels) {
  const std::vector<int64_t> rows = cut_windows(sizes);
  const int64_t in_windows = std::ssize(rows);
  const auto order = windows_of(sizes, {.side = 3, .shift = 1, .clamps = false}).order;
  all.push_back({.op = "reorder",
                 .variant = "windows",
                 .shapes = {{area(sizes), channels}},
                 .function = [=](const Tensors& x) { return Tensors{reorder(x[0], order)}; },
                 .plain =
                     [=](const definition::Inputs& in) {
                       definition::Doubles y;
                       for (const int64_t row : rows) {
                         for (int64_t c = 0; c < channels; ++c) {
                           y.push_back(row < 0 ? 0 : in[0][row * channels + c]);
                         }
                       }
                       return y;
                     }});
  all.push_back({.op = "restore",
                 .variant = "windows",
                 .shapes = {{in_windows, channels}},
                 .function = [=](const Tensors& x) { return Tensors{restore(x[0], order)}; },
                 .plain =
                     [=](const definition::Inputs& in) {
                       definition::Doubles y(static_cast<size_t>(area(sizes) * channels));
                       for (int64_t i = 0; i < in_windows * channels; ++i) {
                         const int64_t row = rows[static_cast<size_t>(i / channels)];
                         if (row >= 0) y[row * channels + i % channels] = in[0][i];
                       }
                       return y;
                     }});
}

// Windows of 3 x 3 tokens, of which one has two lines only, and regions of them.
void add_window_attention(std::vector<OpCase>& all, const OpSizes& z) {
  const Segments windows = Segments::from_lengths(std::vector<int64_t>{9, 6, 9});
  std::vector<int32_t> buckets, codes;
  for (int32_t i = 24; i >= 0; --i) buckets.push_back(i);
  for (int32_t i = 0; i < 9; ++i) codes.push_back(i / 3 * 5 + i % 3);
  Visibility regions;
  for (int32_t i = 0; i < 24; ++i) regions.order.push_back(i < 15 ? 0 : i % 3);
  regions.first = regions.order;
  for (const int32_t region : regions.order) regions.limit.push_back(region + 1);
  const int64_t rows = windows.rows(), w = z.width, heads = z.heads;
  for (const bool has_regions : {false, true}) {
    const auto options = [=](const Tensors& x) {
      return AttentionOptions{
          .heads = heads,
          .visibility = has_regions ? std::make_shared<const Visibility>(regions) : nullptr,
          .bias = {x[1], std::make_shared<const std::vector<int32_t>>(buckets),
                   std::make_shared<const std::vector<int32_t>>(codes)}};
    };
    all.push_back(
        {.op = "self_attention",
         .variant = has_regions ? "windows_regions" : "windows",
         .shapes = {{rows, 3 * w}, {25, heads}},
         .function =
             [=](const Tensors& x) { return Tensors{self_attention(x[0], windows, options(x))}; },
         .reference =
             [=](const Tensors& x) {
               const auto part = [&](int64_t i) { return slice(x[0], 1, i * w, w); };
               return Tensors{
                   attention_reference(part(0), part(1), part(2), windows, windows, options(x))};
             },
         .always_f32 = {1}});
  }
}

void add_rows_of_images(std::vector<OpCase>& all, const OpSizes& z) {
  const Shape rows = z.norm, table{3, rows[1]};
  const std::vector<int32_t> ids = some_positions(rows[0], 3);
  for (const bool drops : {false, true}) {
    const DropoutSpec spec = drops ? some_dropout(rows[0]) : DropoutSpec{};
    all.push_back(
        {.op = "add_positions",
         .variant = drops ? "with_dropout" : "plain",
         .shapes = {rows, table},
         .function =
             [=](const Tensors& x) { return Tensors{add_positions(x[0], x[1], ids, spec)}; },
         .plain = definition::each([=](const definition::Inputs& in, size_t i) {
           const auto [r, c] = std::lldiv(static_cast<int64_t>(i), rows[1]);
           const double sum = double(in[0][i]) + in[1][r % 3 * rows[1] + c];
           return sum * spec.over(rows[0]).factor(r, c);
         })});
  }
  for (const int64_t height : {int64_t{1}, int64_t{3}, z.channels + 9}) {
    const Shape tokens{4 * height, z.channels + 18};
    all.push_back(
        {.op = "channel_rows",
         .variant = fmt::format("{}_rows", height),
         .shapes = {tokens},
         .function = [=](const Tensors& x) { return Tensors{channel_rows(x[0], height)}; },
         .plain = definition::each([=](const definition::Inputs& in, size_t i) {
           const auto [row, token] = std::lldiv(static_cast<int64_t>(i), height);
           const auto [image, channel] = std::lldiv(row, tokens[1]);
           return double(in[0][(image * height + token) * tokens[1] + channel]);
         })});
  }
  DropoutSpec path = some_dropout(rows[0]);  // samples of three rows
  path.of_samples = true, path.p = 0.5f;
  const auto factor = [=](int64_t r) {
    const Dropout d = path.over(rows[0]);
    return Dropout{d.p, d.key, d.sample, std::vector<uint32_t>(rows[0]).data()}.factor(r, 0);
  };
  all.push_back({.op = "dropout",
                 .variant = "of_samples",
                 .shapes = {rows},
                 .function = [=](const Tensors& x) { return Tensors{dropout(x[0], path)}; },
                 .plain = definition::each([=](const definition::Inputs& in, size_t i) {
                   return double(in[0][i]) * factor(static_cast<int64_t>(i) / rows[1]);
                 })});
  all.push_back({.op = "add_norm",
                 .variant = "with_dropout_of_samples",
                 .shapes = {rows, rows, {rows[1]}, {rows[1]}},
                 .function =
                     [=](const Tensors& x) {
                       const AddNorm y = add_norm(x[0], x[1], path, x[2], x[3], 1e-5f);
                       return Tensors{y.sum, y.norm};
                     },
                 .reference =
                     [=](const Tensors& x) {
                       const AddNorm y = add_norm_reference(x[0], x[1], path, x[2], x[3], 1e-5f);
                       return Tensors{y.sum, y.norm};
                     },
                 .always_f32 = {2, 3}});
}

}  // namespace

void add_patch_cases(std::vector<OpCase>& all, const OpSizes& z) {
  const std::vector<ImageSize> sizes = z.images;
  add_convolutions(all, z);
  add_wide_convolutions(all);
  add_rows_of_images(all, z);
  for (const WindowOptions o :
       {WindowOptions{3, 1, 1}, WindowOptions{2, 2, 0}, WindowOptions{3, 2, 1},
        WindowOptions{1, 2, 0}, WindowOptions{2, 1, 3}, WindowOptions{2, 3, 0}}) {
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
      all.push_back({.op = "max_pool",
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
  add_windows(all, sizes, z.channels);
  add_window_attention(all, z);
  std::vector<int64_t> lengths;
  for (const ImageSize& size : sizes) lengths.push_back(size.height * size.width);
  const Segments segments = Segments::from_lengths(lengths);
  const int64_t channels = z.channels + 18;
  all.push_back(
      {.op = "segment_mean",
       .variant = "images",
       .shapes = {{area(sizes), channels}},
       .function = [=](const Tensors& x) { return Tensors{segment_mean(x[0], segments)}; },
       .plain =
           [=](const definition::Inputs& in) {
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
