// Pixels in the order of their windows, attention over these, and back.
#include "heddle/nn/images/pixel_attention.h"

#include "heddle/nn/images/image_rows.h"
#include "heddle/ops/images/windows.h"

namespace heddle::nn {

PixelAttention::PixelAttention(const Scope& s, const Options& o)
    : name_(s.prefix()),
      window_(o.window),
      shift_(o.is_shifted ? o.window / 2 : 0),
      attention_(s.prefix(), Linear(s, {"query", "key", "value"}, {.in = o.width, .out = o.width}),
                 Linear(s / "output", {.in = o.width, .out = o.width, .init = o.output}),
                 {.heads = o.heads, .observed = o.observed}) {}

Tensor PixelAttention::operator()(const Tensor& x, std::span<const ImageSize> sizes,
                                  const Run& run) const {
  const LayerName layer(name_);
  if (window_ == 0) {
    const Segments images = image_segments(sizes);
    return attention_(x, TokenRows{.segments = &images}, run);
  }
  const GridWindows windows = windows_of(sizes, {.side = window_, .shift = shift_});
  const TokenRows rows{.segments = &windows.segments, .visibility = windows.visibility};
  return restore(attention_(reorder(x, windows.order), rows, run), windows.order);
}

}  // namespace heddle::nn
