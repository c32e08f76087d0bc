// The page of `heddle augment`: an image under each augmentation, and under all that were asked
// for.
#pragma once

#include <optional>
#include <string>

#include "heddle/inspect/pages/page.h"
#include "heddle/vision/augment.h"

namespace heddle::inspect {

struct ImageToAugment {
  Image image;
  std::string name;  ///< for readers
};

struct AugmentationView {
  Augmentation how;                           ///< what a training run would be told
  ImageSize size;                             ///< of what a model would be trained on
  int64_t draws = 12;                         ///< of the combined settings
  uint64_t seed = 1;                          ///< of all draws
  std::optional<ImageToAugment> second = {};  ///< what the first is mixed with
};

/// Every operation at the magnitude of `how` and at the largest; each other augmentation alone, by
/// several draws, at its setting or, where it is off, at one that is common; the policies; the
/// combined settings in the order in which training applies them; MixUp and CutMix with `second`.
/// The same arguments give the same page.
Page augmentation_page(const ImageToAugment& image, const AugmentationView& view);

}  // namespace heddle::inspect
