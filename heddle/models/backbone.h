// What detectors stand on: models whose stages give maps of an image's
// features.
#pragma once

#include <memory>
#include <optional>
#include <string>
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
  /// How the map of a stage, from 0, lies over an image. Errors: those of grid().
  virtual ImageSize grid_of(const ImageSize& image, size_t map) const = 0;
  /// How lies what goes into the first stage, of a model whose states are maps in transformers,
  /// channels first; none: they are rows there too.
  virtual std::optional<ImageSize> stem_grid(const ImageSize&) const { return {}; }
  /// That of the last stage.
  ImageSize grid(const ImageSize& image) const final {
    return grid_of(image, channels().size() - 1);
  }
  /// Whether a map below another model goes through a norm, as those of transformers' SwinBackbone.
  virtual bool has_normed_maps() const { return false; }
};

/// The backbone inside of another model, by the `backbone_config` of that
/// model's config.json: the config of a model that is one, or of another that reads images (the
/// states of its patches are the only map), or timm's name of a
/// ResNet ({"model_type": "timm_backbone", "backbone": "resnet50"}), whose
/// tensors have timm's names then.
class ChosenBackbone {
 public:
  /// Its parameters lie at s itself, without a base of their own. channels: of
  /// a pixel, where the config does not say. Batch norms of a ResNet are frozen
  /// unless it says otherwise. Errors: data, with `source` in front, for
  /// another model, or a map that it does not have.
  ChosenBackbone(const nn::Scope& s, const Json& config, int64_t channels,
                 const std::string& source);

  /// The map that the config names (the last of out_features, or of out_indices), else the last. It
  /// is not observed.
  FeatureMap features(const ImageRows& images, const nn::Run& run) const;
  /// Channels of that map.
  int64_t channels() const { return channels_; }
  /// How that map lies over an image.
  ImageSize grid(const ImageSize& image) const;
  nn::TensorNames names() const;

 private:
  FeatureMap patches(const ImageRows& images, const nn::Run& run) const;

  std::unique_ptr<Model> model_;
  const ImageModel* images_ = nullptr;
  const Backbone* backbone_ = nullptr;  // null: one of patches
  size_t map_ = 0;
  int64_t channels_ = 0;
  std::optional<LayerNorm> norm_;
};

}  // namespace heddle
