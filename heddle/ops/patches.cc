// Patches of images and pools over them; gradients are gathered by pixel, in the order of places.
#include "heddle/ops/patches.h"

#include "heddle/kernels/kernels.h"

namespace heddle {
namespace {

using Sizes = std::shared_ptr<const std::vector<ImageSize>>;

int64_t area(std::span<const ImageSize> sizes) {
  int64_t pixels = 0;
  for (const ImageSize& size : sizes) pixels += size.height * size.width;
  return pixels;
}

void check_pixels(const char* name, const Tensor& x, std::span<const ImageSize> sizes) {
  check(x.rank() == 2 && x.size(0) == area(sizes), ErrorKind::shape,
        "{}: x is {}; {} images of {} pixels need a row for each pixel", name, x.shape(),
        sizes.size(), area(sizes));
}

// Without x and y.
WindowArgs args_of(const Sizes& sizes, const WindowOptions& options) {
  return {.sizes = sizes->data(),
          .images = static_cast<int64_t>(sizes->size()),
          .options = options};
}

}  // namespace

ImageSize output_size(const ImageSize& size, const WindowOptions& o) {
  check(o.kernel >= 1 && o.stride >= 1 && o.padding >= 0, ErrorKind::shape,
        "windows of {} pixels, {} apart, with padding of {}: there are none such", o.kernel,
        o.stride, o.padding);
  const ImageSize out{o.windows(size.height), o.windows(size.width)};
  check(out.height > 0 && out.width > 0, ErrorKind::shape,
        "an image of {} x {} pixels with padding of {} holds no window of {} x {}", size.height,
        size.width, o.padding, o.kernel, o.kernel);
  return out;
}

std::vector<ImageSize> output_sizes(std::span<const ImageSize> sizes,
                                    const WindowOptions& options) {
  std::vector<ImageSize> out;
  out.reserve(sizes.size());
  for (const ImageSize& size : sizes) out.push_back(output_size(size, options));
  return out;
}

Tensor patch_rows(const Tensor& x, std::span<const ImageSize> sizes, const WindowOptions& options) {
  check_pixels("patch_rows", x, sizes);
  if (options == WindowOptions()) return x;
  const int64_t windows = area(output_sizes(sizes, options));
  const auto kept = std::make_shared<const std::vector<ImageSize>>(sizes.begin(), sizes.end());
  const Tensor pixels = x.to_contiguous();
  Tensor y = Tensor::empty({windows, options.kernel * options.kernel * x.size(1)}, x.dtype());
  WindowArgs args = args_of(kept, options);
  args.x = pixels.rows(), args.y = y.rows();
  kernels().patch_rows(args);
  return record("patch_rows", {x}, y,
                [kept, options, shape = x.shape()](const Tensor& dy) -> Grads {
                  Tensor dx = Tensor::empty(shape, dy.dtype());
                  WindowArgs back = args_of(kept, options);
                  back.x = dx.rows(), back.y = dy.rows();
                  kernels().patch_rows_backward(back);
                  return {dx};
                });
}

Tensor max_pool(const Tensor& x, std::span<const ImageSize> sizes, const WindowOptions& options) {
  check_pixels("max_pool", x, sizes);
  check(options.kernel <= 15 && options.padding < options.kernel, ErrorKind::shape,
        "max_pool: the kernel is {}, the padding {}; it must be at most 15, and the padding less",
        options.kernel, options.padding);
  const int64_t windows = area(output_sizes(sizes, options));
  const auto kept = std::make_shared<const std::vector<ImageSize>>(sizes.begin(), sizes.end());
  const Tensor pixels = x.to_contiguous();
  const Tensor chosen = Tensor::empty({windows, x.size(1)}, DType::u8);
  Tensor y = Tensor::empty({windows, x.size(1)}, x.dtype());
  WindowArgs args = args_of(kept, options);
  args.x = pixels.rows(), args.y = y.rows(), args.chosen = chosen.data<uint8_t>();
  kernels().max_pool(args);
  return record("max_pool", {x}, y,
                [kept, options, chosen, shape = x.shape()](const Tensor& dy) -> Grads {
                  Tensor dx = Tensor::empty(shape, dy.dtype());
                  WindowArgs back = args_of(kept, options);
                  back.x = dx.rows(), back.y = dy.rows(), back.chosen = chosen.data<uint8_t>();
                  kernels().max_pool_backward(back);
                  return {dx};
                });
}

}  // namespace heddle
