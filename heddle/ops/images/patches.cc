// Patches of images, convolutions and pools; gradients are gathered by pixel, in the order of
// places.
#include "heddle/ops/images/patches.h"

#include <algorithm>
#include <optional>

#include "heddle/kernels/kernels.h"
#include "heddle/ops/images/direct_convolution.h"
#include "heddle/ops/images/image_blocks.h"
#include "heddle/ops/images/winograd.h"

namespace heddle {
namespace {

using Sizes = std::shared_ptr<const std::vector<ImageSize>>;

void check_pixels(const char* name, const Tensor& x, std::span<const ImageSize> sizes) {
  check(x.rank() == 2 && x.size(0) == area(sizes), ErrorKind::shape,
        "{}: x is {}; {} images of {} pixels need a row for each pixel", name, x.shape(),
        sizes.size(), area(sizes));
}

// Without x and y.
WindowArgs args_of(const Sizes& sizes, const WindowOptions& options) {
  return {
      .sizes = sizes->data(), .images = static_cast<int64_t>(sizes->size()), .options = options};
}

// Bytes of a block's patches: they stay in the cache of the second or third level.
constexpr int64_t kBlockBytes = 2 << 20;

// A factor that stays as it is over the blocks of a call, so that it is packed once.
class PackedOnce {
 public:
  explicit PackedOnce(size_t blocks) : id_(blocks > 1 ? new_constant() : 0) {}
  PackedOnce(const PackedOnce&) = delete;
  PackedOnce& operator=(const PackedOnce&) = delete;
  ~PackedOnce() {
    if (id_ != 0) forget_packed(id_);
  }
  uint64_t id() const { return id_; }

 private:
  uint64_t id_;
};

// A convolution over blocks of images.
struct Blockwise {
  Sizes sizes;
  WindowOptions options;
  std::vector<ImageBlock> blocks;
  int64_t width = 0;  // of a patch

  Blockwise(std::span<const ImageSize> given, const WindowOptions& o, int64_t channels, DType dtype)
      : sizes(std::make_shared<const std::vector<ImageSize>>(given.begin(), given.end())),
        options(o),
        blocks(image_blocks(
            given, o,
            {.of_output = o.kernel * o.kernel * channels * size_of(dtype), .most = kBlockBytes})),
        width(o.kernel * o.kernel * channels) {}

  int64_t windows() const { return blocks.back().output + blocks.back().outputs; }
  // Room for the patches of any block.
  Tensor room(DType dtype) const {
    const auto more = [](const ImageBlock& a, const ImageBlock& b) {
      return a.outputs < b.outputs;
    };
    return Tensor::empty({std::max_element(blocks.begin(), blocks.end(), more)->outputs, width},
                         dtype);
  }
  WindowArgs args(const ImageBlock& b, const Tensor& pixels, const Rows& patches) const {
    return {.x = pixels.rows().slice(b.pixel, b.pixels),
            .y = patches,
            .sizes = sizes->data() + b.image,
            .images = b.images,
            .options = options};
  }

  Tensor product(const Tensor& x, const Tensor& w, const Tensor& bias, const LinearOptions& o,
                 const Tensor& kept) const {
    const int64_t outputs = o.count < 0 ? w.size(0) - o.first : o.count;
    const Shape shape{windows(), outputs};
    check(!o.added.defined() || o.added.shape() == shape, ErrorKind::shape,
          "convolution: the result is {}, what is added to it {}", shape, o.added.shape());
    const Tensor y =
        o.may_overwrite_added ? o.added : Tensor::empty(shape, o.result.value_or(x.dtype()));
    if (convolves_directly(options, x.dtype(), o)) {
      const bool is_alike = std::ranges::count(*sizes, sizes->front()) == std::ssize(*sizes);
      const PackedOnce packed(is_alike ? 1 : sizes->size());
      LinearOptions own = o;
      if (own.constant_w == 0) own.constant_w = packed.id();
      direct_convolution(x, *sizes, w, bias, options, own, y);
      return y;
    }
    const Tensor all = room(x.dtype());
    const PackedOnce packed(blocks.size());
    for (const ImageBlock& b : blocks) {
      const Rows patches = all.rows().slice(0, b.outputs);
      kernels().patch_rows(args(b, x, patches));
      const auto of = [&](const Tensor& t) { return t.rows().slice(b.output, b.outputs); };
      kernels().gemm({.a = patches,
                      .b = w.rows(),
                      .c = of(y),
                      .bias = bias.defined() ? bias.data<float>() + o.first : nullptr,
                      .transpose_b = true,
                      .constant_b = o.constant_w != 0 ? o.constant_w : packed.id(),
                      .first = o.first,
                      .added = o.added.defined() ? of(o.added) : Rows(),
                      .activation = o.activation,
                      .pre_activation = kept.defined() ? of(kept) : Rows(),
                      .int8 = o.int8});
    }
    return y;
  }

  // Of x (undefined unless it is wanted) and w, from that of the product: dw = dyᵀ patches, dx =
  // the sum of dy w over the windows that hold a pixel.
  std::pair<Tensor, Tensor> gradients(const Tensor& x, const Tensor& w, const Tensor& dy,
                                      bool wants_dx) const {
    const Tensor all = room(x.dtype()), dx = wants_dx ? empty_like(x) : Tensor();
    const Tensor dw = Tensor::empty(w.shape(), DType::f32);
    const PackedOnce packed(blocks.size());
    for (const ImageBlock& b : blocks) {
      const Rows patches = all.rows().slice(0, b.outputs);
      const Rows dy_of_block = dy.rows().slice(b.output, b.outputs);
      kernels().patch_rows(args(b, x, patches));
      kernels().gemm({.a = dy_of_block,
                      .b = patches,
                      .c = dw.rows(),
                      .transpose_a = true,
                      .accumulate = b.image > 0});
      if (!wants_dx) continue;
      kernels().gemm({.a = dy_of_block, .b = w.rows(), .c = patches, .constant_b = packed.id()});
      kernels().patch_rows_backward(args(b, dx, patches));
    }
    return {dx, dw};
  }
};

}  // namespace

int64_t area(std::span<const ImageSize> sizes) {
  int64_t pixels = 0;
  for (const ImageSize& size : sizes) {
    check(size.height >= 0 && size.width >= 0, ErrorKind::shape,
          "an image cannot have {} x {} pixels", size.height, size.width);
    pixels += size.height * size.width;
  }
  return pixels;
}

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

Tensor convolution(const Tensor& x, std::span<const ImageSize> sizes, const Tensor& w,
                   const Tensor& bias, const WindowOptions& windows, const LinearOptions& options) {
  check_pixels("convolution", x, sizes);
  if (windows == WindowOptions() || sizes.empty()) {
    return linear(patch_rows(x, sizes, windows), w, bias, options);
  }
  const Tensor pixels = x.to_contiguous().detached();
  const Blockwise blocks(sizes, windows, x.size(1), x.dtype());
  const bool rounds = options.constant_w != 0 && w.dtype() == DType::f32;
  check(w.rank() == 2 && w.size(1) == blocks.width && (x.dtype() == w.dtype() || rounds),
        ErrorKind::shape,
        "convolution: x is {} {}, windows are of {} x {} pixels, the weight is {} {}; its rows "
        "must be as wide as a window",
        x.shape(), dtype_name(x.dtype()), windows.kernel, windows.kernel, w.shape(),
        dtype_name(w.dtype()));
  check_bias("convolution", bias, w.size(0));
  const bool has_gradient = needs_grad({&x, &w, &bias}), x_needs = needs_grad({&x});
  check(!has_gradient || (options.constant_w == 0 && !options.added.defined()), ErrorKind::internal,
        "convolution: with a constant weight, or something added, there is no gradient");
  const Activation kind = options.activation;
  // What the activation's slope is found from: its input, or, for ReLU, its result.
  const bool keeps = has_gradient && kind != Activation::none && kind != Activation::relu;
  Tensor kept = keeps ? Tensor::empty({blocks.windows(), w.size(0)}, x.dtype()) : Tensor();
  std::optional<WinogradConvolution> winograd;
  const bool suits_tail = kind == Activation::none || kind == Activation::relu;
  if (options.constant_w == 0 && suits_tail && !options.added.defined() && !options.result &&
      !options.int8 && WinogradConvolution::suits(windows, x.dtype(), x.size(1), w.size(0), true)) {
    winograd.emplace(sizes, windows.padding);
  }
  const bool by_winograd = winograd && !convolves_directly(windows, x.dtype(), options);
  const Tensor y = by_winograd ? winograd->product(pixels, WinogradWeight(w),
                                                   {.bias = bias, .relu = kind == Activation::relu})
                               : blocks.product(pixels, w, bias, options, kept);
  if (kind == Activation::relu) kept = y;
  return record(by_winograd ? "winograd_convolution" : "convolution", {x, w, bias}, y,
                [blocks, winograd, pixels, w = w.detached(), kept, kind, x_needs,
                 has_bias = bias.defined()](const Tensor& dresult) -> Grads {
                  Tensor dy = dresult, db;
                  if (kind != Activation::none) {
                    dy = empty_like(dresult);
                    kernels().activation_backward(kind, kept.rows(), dresult.rows(), {}, dy.rows());
                  }
                  const auto [dx, dw] = winograd ? winograd->gradients(pixels, w, dy, x_needs)
                                                 : blocks.gradients(pixels, w, dy, x_needs);
                  if (has_bias) {
                    db = Tensor::empty({dy.size(1)}, DType::f32);
                    kernels().sum_columns(dy.rows(), db.data<float>());
                  }
                  return {dx, dw, db};
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
