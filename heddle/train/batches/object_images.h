// Images with objects that a detector is trained on or judged by: out of files, or drawn.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "heddle/data/detections.h"
#include "heddle/vision/box_augment.h"

namespace heddle::train {

/// Images by their number, 0 <= i < size.
struct ObjectImages {
  int64_t size = 0;
  std::vector<std::string> classes = {};
  std::string key = {};                        ///< differs wherever an image or a box does
  std::string cache = {};                      ///< its file; empty: there is none
  std::function<BoxedImage(int64_t)> at = {};  ///< any thread may ask, here and below
  std::function<std::vector<LabelledBox>(int64_t)> boxes = {};  ///< at()'s, without the pixels
  std::function<ImageSize(int64_t)> image_size = {};            ///< at()'s
  std::function<int64_t(int64_t)> id = {};                      ///< see DetectionSet::id()
  std::function<std::string(int64_t)> name = {};                ///< for readers

  static ObjectImages of(const DetectionSet& set);
  /// Some of the images, by their numbers.
  ObjectImages select(const std::vector<int64_t>& images) const;
};

struct ObjectSplit {
  ObjectImages train, val;
};

/// What heddle draws itself.
struct DrawnOptions {
  std::string kind;  ///< "shapes" or "cells", see drawn_kinds()
  int64_t images = 0, held_out = 0;
  ImageSize size;
  uint64_t seed = 0;
};
std::vector<std::string> drawn_kinds();
/// Drawn whenever they are asked for; those held out are none of those to train on. Errors: usage
/// for another kind, or a size that it cannot be drawn in.
ObjectSplit drawn_images(const DrawnOptions& options);

/// Objects of each class in some of the images, spread evenly, the most that one has, and how many
/// of them are beyond the first `places` of their image.
struct ObjectCounts {
  std::vector<int64_t> of_class;
  int64_t images = 0, objects = 0, most = 0, beyond = 0;
};
ObjectCounts count_objects(const ObjectImages& images, int64_t most_images, int64_t places);

}  // namespace heddle::train
