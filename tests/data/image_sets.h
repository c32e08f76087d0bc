// Sets of images as a model is tested on them.
#pragma once

#include <string>
#include <vector>

#include "heddle/data/images.h"

namespace heddle {

/// The images to test on at a path where it has such, else those held out, else all of them.
/// `labels` are the model's; if empty, the set's own count.
inline ImageSet open_image_set(const ImageSetOptions& options,
                               const std::vector<std::string>& labels = {}) {
  const ImageSources found = find_images(options.path);
  ImageSource source = (found.test ? found.test : found.val ? found.val : found.train)();
  if (!labels.empty()) relabel(source, labels);
  return cached_set(source, "test", options);
}

}  // namespace heddle
