// The photos of a set, shared out among the parts of a corpus of collages.
#pragma once

#include <string>

#include "corpora/captions/captioned_scenes.h"

namespace heddle::train {

struct PhotoPools {
  PhotoPool train, val, test;
};

/// Of a set of photos in classes, see find_images(): `test` are those that it holds out; of the
/// others the last tenth of each class, rounded up, is `val`. They are decoded when asked for.
/// Errors: those of find_images(), check_photos(); data if the set holds out none, or a class has
/// one photo to train on.
PhotoPools open_photo_pools(const std::string& path);

}  // namespace heddle::train
