// Axes swapped image by image; the gradient swaps them back.
#include "heddle/ops/images/channel_rows.h"

#include "heddle/kernels/kernels.h"

namespace heddle {
namespace {

Tensor swapped(const Tensor& x, int64_t height) {
  const Tensor y = Tensor::empty({x.size(0) / height * x.size(1), height}, x.dtype());
  kernels().transpose({.x = x.to_contiguous().rows(), .y = y.rows(), .height = height});
  return y;
}

}  // namespace

Tensor channel_rows(const Tensor& x, int64_t height) {
  check(x.rank() == 2 && height > 0 && x.size(0) % height == 0, ErrorKind::shape,
        "channel_rows: x is {}; images have {} rows each", x.shape(), height);
  return record("channel_rows", {x}, swapped(x, height),
                [width = x.size(1)](const Tensor& dy) -> Grads { return {swapped(dy, width)}; });
}

}  // namespace heddle
