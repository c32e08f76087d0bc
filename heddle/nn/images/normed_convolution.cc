// Folding a norm by running statistics into the convolution before it.
#include "heddle/nn/images/normed_convolution.h"

#include "heddle/base/parallel.h"
#include "heddle/base/profile.h"
#include "heddle/nn/images/image_rows.h"

namespace heddle::nn {

// W' = scale W, b' = shift, for the identities of all that they are made of.
struct NormedConvolution::Folded {
  std::mutex mutex;
  uint64_t of_weight = 0;
  std::array<uint64_t, 4> of_norm = {};
  Tensor weight, bias;
  std::array<uint64_t, 2> constants = {};  // for products in f32 and in bf16; 0: not folded yet
  std::shared_ptr<const WinogradWeight> winograd;  // null until it is wanted

  void renew() {
    winograd.reset();
    for (uint64_t& constant : constants) {
      if (constant != 0) forget_packed(constant);
      constant = new_constant();
    }
  }
  ~Folded() {
    for (const uint64_t constant : constants) {
      if (constant != 0) forget_packed(constant);
    }
  }
};

namespace {

std::variant<BatchNorm, GroupNorm> make_norm(const Scope& s, int64_t width, const NormKind& kind) {
  if (kind.over == NormKind::Over::group) return GroupNorm(s, width, kind.groups, kind.eps);
  return BatchNorm(
      s, {.width = width, .eps = kind.eps, .is_frozen = kind.over == NormKind::Over::frozen_batch});
}

Convolution::Options without_bias(Convolution::Options o) {
  o.bias = false;
  return o;
}

}  // namespace

NormedConvolution::NormedConvolution(const Scope& convolution, const Scope& normalization,
                                     Convolution::Options options, const NormKind& kind)
    : convolution_(convolution, without_bias(options)),
      norm_(make_norm(normalization, options.out, kind)),
      folded_(std::make_shared<Folded>()) {}

Tensor NormedConvolution::operator()(const Tensor& x, std::span<const ImageSize> sizes,
                                     const NormTail& tail, const Run& run) const {
  const bool is_line = std::holds_alternative<BatchNorm>(norm_);
  // A layer that is computed again must have had the bits that it has while it is recorded.
  const bool has_gradient = is_recording() || run.dropout.training || run.recompute;
  if (is_line && !has_gradient) return by_folded(x, sizes, tail, run);
  return normalize(convolve(x, sizes, run), output_sizes(sizes), tail, run);
}

Tensor NormedConvolution::normalize(const Tensor& y, std::span<const ImageSize> sizes,
                                    const NormTail& tail, const Run& run) const {
  if (const auto* batch = std::get_if<BatchNorm>(&norm_)) return (*batch)(y, tail, run);
  return std::get<GroupNorm>(norm_)(y, image_segments(sizes), tail, run);
}

Tensor NormedConvolution::by_folded(const Tensor& x, std::span<const ImageSize> sizes,
                                    const NormTail& tail, const Run& run) const {
  Parameter& w = convolution_.weight();
  const auto& norm = std::get<BatchNorm>(norm_);
  LinearOptions options{.activation = tail.activation,
                        .int8 = run.int8,
                        .added = tail.added,
                        .may_overwrite_added = tail.may_overwrite_added};
  const bool is_relu = tail.activation == Activation::relu;
  const bool by_winograd = (is_relu || tail.activation == Activation::none) && !run.int8 &&
                           convolution_.suits_winograd(x.dtype());
  std::shared_ptr<const WinogradWeight> winograd;
  Tensor weight, bias;
  {
    const std::lock_guard lock(folded_->mutex);
    Folded& f = *folded_;
    if (f.constants[0] == 0 || f.of_weight != w.identity(DType::f32) ||
        f.of_norm != norm.identity()) {
      const auto [scale, shift] = norm.line();
      const Tensor folded = Tensor::empty(w.shape(), DType::f32);
      const int64_t width = folded.size(1);
      if (!is_counting()) {  // or nobody would ask for the values
        const float* const from = w.value().data<float>();
        parallel_for(folded.size(0), [&, by = scale.data<float>()](int64_t r) {
          for (int64_t i = r * width; i < (r + 1) * width; ++i) {
            folded.data<float>()[i] = by[r] * from[i];
          }
        });
      }
      f.of_weight = w.identity(DType::f32), f.of_norm = norm.identity();
      f.weight = folded, f.bias = shift;
      f.renew();
    }
    if (by_winograd && f.winograd == nullptr) {
      f.winograd = std::make_shared<const WinogradWeight>(f.weight);
    }
    weight = f.weight, bias = f.bias, options.constant_w = f.constants[x.dtype() == DType::bf16];
    winograd = f.winograd;
  }
  if (by_winograd) {
    return convolution_.by(*winograd, x, sizes,
                           {.bias = bias, .added = tail.added, .relu = is_relu});
  }
  return convolution_.by(weight, bias, x, sizes, options);
}

}  // namespace heddle::nn
