// The page of `heddle augment --data`: an image whose objects have boxes under each augmentation of
// detectors, and under all that were asked for, with the boxes.
#pragma once

#include <string>

#include "heddle/inspect/pages/page.h"
#include "heddle/vision/box_augment.h"

namespace heddle::inspect {

struct BoxAugmentationView {
  BoxAugmentation how;  ///< what a training run would be told
  BoxedSet set;
  int64_t sample = 0;  ///< the image of the set that is shown
  std::string name;    ///< of that image, for readers
  int64_t draws = 12;  ///< of the combined settings
  uint64_t seed = 1;   ///< of all draws
};

/// The combined settings in the order in which training applies them; each alone, by several draws,
/// at its setting or, where it is off, at one that is common. The same view gives the same page.
Page box_augmentation_page(const BoxAugmentationView& view);

}  // namespace heddle::inspect
