// Mixing the images of a batch with each other, and what they show.
#pragma once

#include <span>
#include <vector>

#include "heddle/base/rng.h"
#include "heddle/tensor/image_size.h"
#include "heddle/vision/augment.h"

namespace heddle {

/// How a batch is mixed. MixUp adds up two images, pixel by pixel; CutMix puts a rectangle of the
/// one into the other.
struct Mixing {
  enum class Kind : uint8_t { none, mixup, cutmix };
  Kind kind = Kind::none;
  double share = 1;            ///< of its own that an image keeps: lambda
  double row = 0, column = 0;  ///< middle of CutMix's rectangle, from 0 to 1

  /// The rectangle in an image: its area is 1 - share of the image's, less what lies outside.
  PixelBox box(ImageSize size) const;
  /// The share that an image of the size keeps; of CutMix's what the rectangle really leaves.
  double kept(ImageSize size) const;
};

/// Whether and how a batch is mixed, as mix_probability, mixup_alpha and cutmix_alpha say: where
/// both are above 0 each is taken half the time; the share is drawn from Beta(alpha, alpha).
/// Sources: Zhang et al. 2018, "mixup"; Yun et al. 2019, "CutMix"; the choice of one is timm's.
Mixing draw_mixing(const Augmentation& how, RngKey key);

/// A batch of images and how much of each class they show.
struct MixedBatch {
  std::span<float> pixels;  ///< [sum of height * width, channels]: the images end to end
  int64_t channels = 0;
  std::span<const ImageSize> sizes;  ///< of the images
  std::span<float> targets;          ///< [images, classes]: the weight of each class
  int64_t classes = 0;
};

/// Mixes the images of each size in pairs, the first with the last and so on inwards; one that is
/// left over stays as it is. Targets are mixed as the areas or levels are: a target that sums to 1
/// does so behind it. Errors: shape for spans of other lengths than the sizes need.
void mix(const Mixing& how, const MixedBatch& batch);

/// The samples of a batch, whose images are of one size, in at most so many parts of about equal
/// numbers: both of a pair are in one part, so that mix() does to all parts what it does to the
/// whole.
std::vector<std::vector<int64_t>> split_for_mixing(std::span<const int64_t> samples, int64_t parts);

/// A number between 0 and 1 from Beta(alpha, alpha), alpha > 0: two numbers from Gamma(alpha),
/// their first's share. Source: Marsaglia and Tsang 2000, "A simple method for generating gamma
/// variables".
double draw_beta(double alpha, RngStream& random);

}  // namespace heddle
