// How images are changed at random before a model is trained on them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "heddle/base/json/fields.h"
#include "heddle/base/rng.h"
#include "heddle/vision/image.h"
#include "heddle/vision/resize.h"

namespace heddle {

/// What is done to each image of a training batch, in this order; and to the batch, see mixing.h.
struct Augmentation {
  double random_resized_crop = 0;
  int64_t random_crop = 0;
  bool flip = false;
  double color_jitter = 0;
  std::string auto_augment = "none";
  int64_t rand_augment_count = 2, rand_augment_magnitude = 9;
  double random_erasing = 0;
  std::vector<int64_t> augment_fill = {0, 0, 0};
  double mixup_alpha = 0, cutmix_alpha = 0, mix_probability = 1;

  template <class V>
  void fields(V& v) {
    v("random_resized_crop", random_resized_crop,
      "smallest share of an image's area that is cut out and resized; 0: none", between(0, 1));
    v("random_crop", random_crop,
      "pixels that are added on all sides before a part of the image's size is cut out; 0: none",
      between(0, 65536));
    v("flip", flip, "mirror half of the images, left to right");
    v("color_jitter", color_jitter,
      "brightness, contrast and saturation change by a factor of up to 1 +- this", between(0, 100));
    v("auto_augment", auto_augment,
      "operations on each image: RandAugment's, AutoAugment's for CIFAR-10, TrivialAugment's",
      one_of({"none", "rand_augment", "cifar10", "trivial"}));
    v("rand_augment_count", rand_augment_count, "operations of rand_augment", between(0, 14));
    v("rand_augment_magnitude", rand_augment_magnitude, "how far they go, 0 to 30", between(0, 30));
    v("random_erasing", random_erasing, "probability that a rectangle is painted over",
      between(0, 1));
    v("augment_fill", augment_fill,
      "red, green, blue (0 to 255) of what is added, uncovered or painted over", between(0, 255));
    v("mixup_alpha", mixup_alpha, "of the distribution of MixUp's weights; 0: none", at_least(0));
    v("cutmix_alpha", cutmix_alpha, "of the distribution of CutMix's areas; 0: none", at_least(0));
    v("mix_probability", mix_probability, "that a batch is mixed, by one of the two",
      between(0, 1));
  }

  /// Whether any batch is mixed.
  bool mixes() const { return (mixup_alpha > 0 || cutmix_alpha > 0) && mix_probability > 0; }
  /// Errors: usage, naming `source`, for an augment_fill of other than three numbers.
  void check(const std::string& source) const;
  Rgb fill() const;
};

/// Whose random numbers: those of an image in an epoch, whatever batch it is in.
struct AugmentDraw {
  uint64_t seed = 0, epoch = 0, sample = 0;

  /// The numbers of one purpose.
  RngStream stream(std::string_view purpose) const;
};

/// What a model is trained on.
struct AugmentTarget {
  ImageSize size;
  Resample resample = Resample::bilinear;
};

/// An image of the target's size: a random part of it (Szegedy et al. 2015), or all of it resized,
/// its shape not kept; then what the other fields ask for, with torchvision's meaning and ranges.
/// A pure function of its arguments. Sources: torchvision 0.29, transforms/transforms.py (crops,
/// ColorJitter, RandomErasing); policies.h.
Image augment(const Image& image, const Augmentation& how, const AugmentTarget& target,
              const AugmentDraw& draw);

/// Brightness, contrast and saturation change, in any order, each by a factor of up to 1 +- the
/// strength: color_jitter's.
void jitter_colors(Image& image, double strength, RngStream& random);

/// Any place of a part in an image, which is no smaller.
PixelBox draw_place(ImageSize whole, ImageSize part, RngStream& random);
/// The part that random_resized_crop cuts out: an area between the share and all, height and width
/// in a ratio from 3/4 to 4/3. If ten draws do not fit, the largest middle part of such a ratio.
PixelBox draw_crop(ImageSize size, double share, RngStream& random);
/// What random_erasing paints over: 2 to 33 % of the area in a ratio from 0.3 to 3.3; nothing if
/// ten draws do not fit. Source: Zhong et al. 2017, "Random Erasing".
std::optional<PixelBox> draw_erased(ImageSize size, RngStream& random);

}  // namespace heddle
