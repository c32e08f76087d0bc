// What detectors stand on: models whose stages give maps of an image's features.
#pragma once

#include <vector>

#include "heddle/models/image_model.h"

namespace heddle {

/// Features of a batch of images at one scale.
struct FeatureMap {
  Tensor x;                      ///< [pixels of all images at that scale, channels]
  std::vector<ImageSize> sizes;  ///< of each image, at that scale
};

class Backbone : public ImageModel {
 public:
  static constexpr const char* kAbility = "gives maps of an image's features";

  using ImageModel::ImageModel;
  /// Channels of the map that each stage gives, finest first.
  virtual std::vector<int64_t> channels() const = 0;
  /// The map of each stage, finest first. Errors: those of hidden().
  virtual std::vector<FeatureMap> features(const ImageRows& images, const Run& run) const = 0;
};

}  // namespace heddle
