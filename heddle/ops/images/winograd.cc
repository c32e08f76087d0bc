// Blocks of images through transforms and 16 products, which run side by side.
#include "heddle/ops/images/winograd.h"

#include <algorithm>
#include <array>

#include "heddle/kernels/kernels.h"

namespace heddle {
namespace {

constexpr int64_t kPlaces = 16;

// Some images of a batch.
struct TiledImages {
  int64_t image = 0, images = 0;    // from this one on, so many
  int64_t pixel = 0, pixels = 0;    // rows of the inputs
  int64_t output = 0, outputs = 0;  // rows of the outputs
  int64_t tiles = 0;

  // Rows from one place of a tile to the next, of a matrix for the block's tiles: one more than
  // there are tiles, so that the 16 places do not lie in the same sets of a cache.
  int64_t stride() const { return tiles + 1; }
  Rows of(const Tensor& tiles_of_block) const {
    return tiles_of_block.rows().slice(0, kPlaces * stride());
  }
  Rows at(const Tensor& tiles_of_block, int64_t place) const {
    return tiles_of_block.rows().slice(place * stride(), tiles);
  }
};

// A convolution's images in blocks of as many as have `bytes` for a tile in `most`, at least one.
struct Blocks {
  std::span<const ImageSize> sizes;
  int64_t padding;
  std::vector<TiledImages> all = {{}};

  Blocks(std::span<const ImageSize> given, int64_t pad, int64_t bytes, int64_t most)
      : sizes(given), padding(pad) {
    const WinogradArgs args{.sizes = sizes.data(), .padding = pad};
    for (int64_t i = 0; i < std::ssize(sizes); ++i) {
      const ImageSize grid = args.grid(i), out = args.outputs(i);
      const TiledImages& last = all.back();
      if (last.images > 0 && (last.tiles + grid.height * grid.width) * bytes > most) {
        all.push_back(
            {.image = i, .pixel = last.pixel + last.pixels, .output = last.output + last.outputs});
      }
      TiledImages& block = all.back();
      block.images += 1, block.tiles += grid.height * grid.width;
      block.pixels += sizes[i].height * sizes[i].width, block.outputs += out.height * out.width;
    }
  }
  // Room for the tiles of any block.
  Tensor room(int64_t channels, DType dtype) const {
    int64_t most = 0;
    for (const TiledImages& b : all) most = std::max(most, b.stride());
    return Tensor::empty({kPlaces * most, channels}, dtype);
  }
  WinogradArgs args(const TiledImages& b, const Rows& pixels, const Tensor& tiles) const {
    return {.pixels = pixels,
            .tiles = b.of(tiles),
            .sizes = sizes.data() + b.image,
            .images = b.images,
            .padding = padding};
  }
  WinogradArgs inputs(const TiledImages& b, const Tensor& x, const Tensor& tiles) const {
    return args(b, x.rows().slice(b.pixel, b.pixels), tiles);
  }
  WinogradArgs outputs(const TiledImages& b, const Tensor& y, const Tensor& tiles) const {
    return args(b, y.rows().slice(b.output, b.outputs), tiles);
  }
};

// Bytes of blocks: what is multiplied with weights stays in the second-level cache; sums of
// weights' gradients, which go through memory once a block, are worth larger ones.
constexpr int64_t kBlockBytes = 2 << 20, kGradientBytes = 8 << 20;

}  // namespace

WinogradWeight::WinogradWeight(const Tensor& w, bool turned)
    : turned_(turned),
      out_(w.size(0)),
      all_(Tensor::empty({kPlaces * w.size(0), w.size(1) / 9}, DType::bf16)) {
  Tensor rounded = w;
  if (w.dtype() != DType::bf16) {
    rounded = Tensor::empty(w.shape(), DType::bf16);
    kernels().convert(w.rows(), rounded.rows());
  }
  kernels().winograd_weights({.w = rounded.rows(), .tiles = all_.rows()});
  for (uint64_t& id : ids_) id = new_constant();
}

WinogradWeight::~WinogradWeight() {
  for (const uint64_t id : ids_) forget_packed(id);
}

void WinogradWeight::multiply(int64_t place, const Rows& from, const Rows& to) const {
  // Turning windows changes places 0 and 3 of a side with each other.
  constexpr std::array<int64_t, 4> kTurned = {3, 1, 2, 0};
  const int64_t of = turned_ ? kTurned[place / 4] * 4 + kTurned[place % 4] : place;
  kernels().gemm({.a = from,
                  .b = all_.rows().slice(of * out_, out_),
                  .c = to,
                  .transpose_b = !turned_,
                  .constant_b = ids_[static_cast<size_t>(place)]});
}

bool WinogradConvolution::suits(const WindowOptions& windows, DType dtype, int64_t in,
                                int64_t out) {
  return windows.kernel == 3 && windows.stride == 1 && windows.padding <= 2 &&
         dtype == DType::bf16 && winograd_is_faster(in, out);
}

WinogradConvolution::WinogradConvolution(std::span<const ImageSize> sizes, int64_t padding)
    : sizes_(sizes.begin(), sizes.end()),
      outputs_(output_sizes(sizes, {.kernel = 3, .padding = padding})),
      padding_(padding) {}

Tensor WinogradConvolution::product(const Tensor& x, const WinogradWeight& w,
                                    const WinogradTail& tail) const {
  check(x.size(0) == area(sizes_), ErrorKind::shape,
        "a convolution's input is {}; its images have {} pixels", x.shape(), area(sizes_));
  const int64_t out = w.outputs();
  const Blocks blocks(sizes_, padding_, kPlaces * (2 * x.size(1) + 4 * out), kBlockBytes);
  const Tensor y = Tensor::empty({area(outputs_), out}, x.dtype());
  const Tensor inputs = blocks.room(x.size(1), DType::bf16);
  const Tensor products = blocks.room(out, DType::f32);
  for (const TiledImages& b : blocks.all) {
    kernels().winograd_inputs(blocks.inputs(b, x, inputs));
    parallel_kernels(kPlaces, [&](int64_t place) {
      w.multiply(place, b.at(inputs, place), b.at(products, place));
    });
    WinogradArgs args = blocks.outputs(b, y, products);
    args.bias = tail.bias.defined() ? tail.bias.data<float>() : nullptr, args.relu = tail.relu;
    if (tail.added.defined()) args.added = tail.added.rows().slice(b.output, b.outputs);
    kernels().winograd_outputs(args);
  }
  return y;
}

std::pair<Tensor, Tensor> WinogradConvolution::gradients(const Tensor& x, const Tensor& w,
                                                         const Tensor& dy, bool wants_dx) const {
  const int64_t in = x.size(1), out = w.size(0);
  const Blocks blocks(sizes_, padding_, kPlaces * 2 * (in + out), kGradientBytes);
  const Tensor inputs = blocks.room(in, DType::bf16), d_outputs = blocks.room(out, DType::bf16);
  const Tensor sums = Tensor::empty({kPlaces * out, in}, DType::f32);
  for (const TiledImages& b : blocks.all) {
    kernels().winograd_inputs(blocks.inputs(b, x, inputs));
    kernels().winograd_outputs_backward(blocks.outputs(b, dy, d_outputs));
    parallel_kernels(kPlaces, [&](int64_t place) {
      kernels().gemm({.a = b.at(d_outputs, place),
                      .b = b.at(inputs, place),
                      .c = sums.rows().slice(place * out, out),
                      .transpose_a = true,
                      .accumulate = b.image > 0});
    });
  }
  const Tensor dw = Tensor::empty(w.shape(), DType::f32);
  kernels().winograd_weights_backward({.w = dw.rows(), .tiles = sums.rows()});
  if (!wants_dx) return {Tensor(), dw};
  const WinogradConvolution back(outputs_, 2 - padding_);
  return {back.product(dy, WinogradWeight(w, true), {}), dw};
}

}  // namespace heddle
