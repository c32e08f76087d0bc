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

  /// Channels of what it takes and makes.
  int64_t inputs() const { return turned_ ? out_ : factors_.size(1); }
  int64_t outputs() const { return turned_ ? factors_.size(1) : out_; }
  /// [16 * out, in], bf16
  const Tensor& factors() const { return factors_; }
  /// to = from times the weights at this place of the tiles. from: [tiles, inputs()], to: [tiles,
  /// outputs()]
  void multiply(int64_t place, const Rows& from, const Rows& to) const;

 private:
  bool turned_;
  int64_t out_;
  Tensor factors_;
  std::array<uint64_t, 16> ids_;
};

/// What comes behind the sums in the same pass.
struct WinogradTail {
  Tensor bias = {};   ///< [out] f32, or undefined
  Tensor added = {};  ///< as the result, or undefined
  bool relu = false;
};

/// The convolution by a weight that is kept in this form, windows one apart.
/// x: [pixels of all images, w.inputs()], bf16    returns: [pixels of all outputs, w.outputs()]
/// Errors: shape if sizes, x or the tail do not fit; those of output_size(); internal where a
/// gradient is wanted: there is none.
Tensor winograd_convolution(const Tensor& x, std::span<const ImageSize> sizes, int64_t padding,
                            const WinogradWeight& w, const WinogradTail& tail = {});

/// The parts of convolution() where it goes this way. Nothing is checked or recorded.
class WinogradConvolution {
 public:
  /// Whether a convolution from `in` to `out` channels is one of these here, and pays: with its
  /// gradients if `trains`.
  static bool suits(const WindowOptions& windows, DType dtype, int64_t in, int64_t out,
                    bool trains);

  /// Of images of these sizes.
  WinogradConvolution(std::span<const ImageSize> sizes, int64_t padding);

  /// x: [pixels, in], bf16    returns: [pixels of all outputs, out]
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
