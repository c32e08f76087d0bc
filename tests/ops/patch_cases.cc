// The cases of windows over images, of means over them, and of what their models do with tokens.
#include <fmt/format.h>

#include <cstdlib>

#include "heddle/ops/elementwise.h"
#include "heddle/ops/embedding.h"
#include "heddle/ops/images/channel_rows.h"
#include "heddle/ops/images/patches.h"
#include "heddle/ops/norm.h"
#include "heddle/ops/reduce.h"
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

// What models of images do with rows of tokens.
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
