// Convolutions of 3 x 3 windows with fewer multiplications, in bf16. What convolution() computes,
// with the rounding of sums of four inputs to bf16 more.
#pragma once

#include <array>

#include "heddle/ops/images/patches.h"

namespace heddle {

/// The 16 factors of a weight's windows, constant while it lives.
class WinogradWeight {
 public:
  /// As in a convolution, or in that of its gradient: windows turned by 180 degrees, from outputs
  /// to inputs. w: [out, 9 * in], bf16, or f32, which counts as rounded
  explicit WinogradWeight(const Tensor& w, bool turned = false);
  WinogradWeight(const WinogradWeight&) = delete;
  WinogradWeight& operator=(const WinogradWeight&) = delete;
  ~WinogradWeight();

  /// Channels of what it makes.
  int64_t outputs() const { return turned_ ? all_.size(1) : out_; }
  /// to = from times the weights at this place of the tiles. from, to: [tiles, channels]
  void multiply(int64_t place, const Rows& from, const Rows& to) const;

 private:
  bool turned_;
  int64_t out_;
  Tensor all_;  // [16 * out, in]
  std::array<uint64_t, 16> ids_;
};

/// What comes behind the sums in the same pass.
struct WinogradTail {
  Tensor bias = {};   ///< [out] f32, or undefined
  Tensor added = {};  ///< as the result, or undefined
  bool relu = false;
};

class WinogradConvolution {
 public:
  /// Whether a convolution from `in` to `out` channels is one of these here, and pays.
  static bool suits(const WindowOptions& windows, DType dtype, int64_t in, int64_t out);

  /// Of images of these sizes.
  WinogradConvolution(std::span<const ImageSize> sizes, int64_t padding);

  /// x: [pixels, in], bf16    returns: [pixels of all outputs, out]. Nothing is recorded.
  Tensor product(const Tensor& x, const WinogradWeight& w, const WinogradTail& tail) const;
  /// Of x (undefined unless it is wanted) and of w (f32) for dy, that of the product with w: [out,
  /// 9 * in], bf16.
  std::pair<Tensor, Tensor> gradients(const Tensor& x, const Tensor& w, const Tensor& dy,
                                      bool wants_dx) const;

 private:
  std::vector<ImageSize> sizes_, outputs_;
  int64_t padding_;
};

}  // namespace heddle
