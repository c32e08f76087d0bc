// Blocks of images through transforms and 16 products.
#include "heddle/ops/images/winograd.h"

#include <algorithm>
#include <array>

#include "heddle/kernels/kernels.h"
#include "heddle/ops/images/image_blocks.h"

namespace heddle {
namespace {

constexpr int64_t kPlaces = 16;

// Bytes of blocks: what is multiplied with weights stays in the second-level cache; sums of
// weights' gradients, which go through memory once a block, are worth larger ones.
constexpr int64_t kBlockBytes = 2 << 20, kGradientBytes = 8 << 20;

WindowOptions windows_of(int64_t padding) { return {.kernel = 3, .padding = padding}; }

// Room for the tiles of any block, on one thread at a time or on each of them.
class BlockTiles {
 public:
  BlockTiles(const std::vector<ImageBlock>& blocks, int64_t channels, DType dtype,
             bool on_each_thread = false)
      : on_each_thread_(on_each_thread) {
    for (const ImageBlock& b : blocks) rows_ = std::max(rows_, kPlaces * stride(b));
    room_ = Tensor::empty({(on_each_thread ? num_threads() : 1) * rows_, channels}, dtype);
  }
  Rows of(const ImageBlock& b) const {
    const int64_t first = on_each_thread_ ? thread_index() * rows_ : 0;
    return room_.rows().slice(first, kPlaces * stride(b));
  }
  Rows at(const ImageBlock& b, int64_t place) const {
    return of(b).slice(place * stride(b), b.tiles);
  }

 private:
  // Rows from one place of a tile to the next: one more than there are tiles, so that the 16 places
  // do not lie in the same sets of a cache.
  static int64_t stride(const ImageBlock& b) { return b.tiles + 1; }

  bool on_each_thread_;
  int64_t rows_ = 0;
  Tensor room_;
};

// The arguments of a transform of some images' pixels, without these.
WinogradArgs args_of(const ImageBlock& b, std::span<const ImageSize> sizes, int64_t padding,
                     const BlockTiles& tiles) {
  return {.tiles = tiles.of(b),
          .sizes = sizes.data() + b.image,
          .images = b.images,
          .padding = padding};
}

// Calls f(place, first, count) for each place, and parts of `rows` rows where there are threads for
// them.
template <class F>
void for_places(int64_t rows, const F& f) {
  constexpr int64_t kGroup = 32;  // rows that are multiplied together
  const int64_t groups = std::max<int64_t>(1, (rows + kGroup - 1) / kGroup);
  const int64_t wanted = in_parallel() ? 1 : (2 * num_threads() + kPlaces - 1) / kPlaces;
  const int64_t part = (groups + wanted - 1) / wanted * kGroup, parts = (rows + part - 1) / part;
  parallel_kernels(kPlaces * parts, [&](int64_t i) {
    const int64_t first = i % parts * part;
    f(i / parts, first, std::min(part, rows - first));
  });
}

}  // namespace

WinogradWeight::WinogradWeight(const Tensor& w, bool turned)
    : turned_(turned),
      out_(w.size(0)),
      factors_(Tensor::empty({kPlaces * w.size(0), w.size(1) / 9}, DType::bf16)) {
  Tensor rounded = w;
  if (w.dtype() != DType::bf16) {
    rounded = Tensor::empty(w.shape(), DType::bf16);
    kernels().convert(w.rows(), rounded.rows());
  }
  kernels().winograd_weights({.w = rounded.rows(), .tiles = factors_.rows()});
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
                  .b = factors_.rows().slice(of * out_, out_),
                  .c = to,
                  .transpose_b = !turned_,
                  .constant_b = ids_[static_cast<size_t>(place)]});
}

Tensor winograd_convolution(const Tensor& x, std::span<const ImageSize> sizes, int64_t padding,
                            const WinogradWeight& w, const WinogradTail& tail) {
  const WinogradConvolution convolution(sizes, padding);
  check(x.rank() == 2 && x.size(0) == area(sizes) && x.size(1) == w.inputs() &&
            x.dtype() == DType::bf16,
        ErrorKind::shape,
        "winograd_convolution: x is {} {}; {} images of {} pixels and a weight of {} channels need "
        "a bf16 row for each pixel",
        x.shape(), dtype_name(x.dtype()), sizes.size(), area(sizes), w.inputs());
  check(!tail.bias.defined() || tail.bias.shape() == Shape{w.outputs()}, ErrorKind::shape,
        "winograd_convolution: the weight has {} outputs, the bias is {}", w.outputs(),
        tail.bias.defined() ? tail.bias.shape() : Shape());
  const Shape result = {area(output_sizes(sizes, windows_of(padding))), w.outputs()};
  check(
      !tail.added.defined() || (tail.added.shape() == result && tail.added.dtype() == DType::bf16),
      ErrorKind::shape, "winograd_convolution: the result is {} bf16, what is added {}", result,
      tail.added.defined() ? tail.added.shape() : Shape());
  check(!needs_grad({&x, &tail.bias, &tail.added}), ErrorKind::internal,
        "winograd_convolution: by a weight that is kept there is no gradient; call convolution()");
  WinogradTail own = tail;
  if (own.added.defined()) own.added = own.added.to_contiguous();
  return record("winograd_convolution", {x, w.factors()},
                convolution.product(x.to_contiguous(), w, own), {});
}

bool WinogradConvolution::suits(const WindowOptions& windows, DType dtype, int64_t in, int64_t out,
                                bool trains) {
  return windows.kernel == 3 && windows.stride == 1 && windows.padding <= 2 &&
         dtype == DType::bf16 && winograd_is_faster(in, out, trains);
}

WinogradConvolution::WinogradConvolution(std::span<const ImageSize> sizes, int64_t padding)
    : sizes_(sizes.begin(), sizes.end()),
      outputs_(output_sizes(sizes, windows_of(padding))),
      padding_(padding) {}

Tensor WinogradConvolution::product(const Tensor& x, const WinogradWeight& w,
                                    const WinogradTail& tail) const {
  const int64_t in = x.size(1), out = w.outputs();
  const std::vector<ImageBlock> blocks = image_blocks(
      sizes_, windows_of(padding_), {.of_tile = kPlaces * (2 * in + 4 * out), .most = kBlockBytes});
  // Where there are enough, each is one thread's from pixels to pixels, and stays in its cache.
  const bool on_each_thread = std::ssize(blocks) >= 2 * num_threads();
  const BlockTiles inputs(blocks, in, DType::bf16, on_each_thread);
  const BlockTiles products(blocks, out, DType::f32, on_each_thread);
  const Tensor y = Tensor::empty({area(outputs_), out}, x.dtype());
  const auto block = [&](int64_t i) {
    const ImageBlock& b = blocks[static_cast<size_t>(i)];
    WinogradArgs from = args_of(b, sizes_, padding_, inputs);
    from.pixels = x.rows().slice(b.pixel, b.pixels);
    kernels().winograd_inputs(from);
    for_places(b.tiles, [&](int64_t place, int64_t first, int64_t count) {
      w.multiply(place, inputs.at(b, place).slice(first, count),
                 products.at(b, place).slice(first, count));
    });
    WinogradArgs to = args_of(b, sizes_, padding_, products);
    to.pixels = y.rows().slice(b.output, b.outputs);
    to.bias = tail.bias.defined() ? tail.bias.data<float>() : nullptr, to.relu = tail.relu;
    if (tail.added.defined()) to.added = tail.added.rows().slice(b.output, b.outputs);
    kernels().winograd_outputs(to);
  };
  if (on_each_thread) {
    parallel_kernels(std::ssize(blocks), block);
  } else {
    for (int64_t i = 0; i < std::ssize(blocks); ++i) block(i);
  }
  return y;
}

std::pair<Tensor, Tensor> WinogradConvolution::gradients(const Tensor& x, const Tensor& w,
                                                         const Tensor& dy, bool wants_dx) const {
  const int64_t in = x.size(1), out = w.size(0);
  const std::vector<ImageBlock> blocks = image_blocks(
      sizes_, windows_of(padding_), {.of_tile = kPlaces * 2 * (in + out), .most = kGradientBytes});
  const BlockTiles inputs(blocks, in, DType::bf16), d_outputs(blocks, out, DType::bf16);
  const Tensor sums = Tensor::empty({kPlaces * out, in}, DType::f32);
  for (const ImageBlock& b : blocks) {
    WinogradArgs of_x = args_of(b, sizes_, padding_, inputs);
    of_x.pixels = x.rows().slice(b.pixel, b.pixels);
    kernels().winograd_inputs(of_x);
    WinogradArgs of_dy = args_of(b, sizes_, padding_, d_outputs);
    of_dy.pixels = dy.rows().slice(b.output, b.outputs);
    kernels().winograd_outputs_backward(of_dy);
    for_places(out, [&](int64_t place, int64_t first, int64_t count) {
      kernels().gemm({.a = d_outputs.at(b, place).columns(first, count),
                      .b = inputs.at(b, place),
                      .c = sums.rows().slice(place * out + first, count),
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
