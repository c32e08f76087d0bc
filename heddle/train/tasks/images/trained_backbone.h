// The backbone of a captioner or a detector that begins as a model that reads images.
#pragma once

#include <string>

#include "heddle/infer/image_batch.h"
#include "heddle/train/config.h"

namespace heddle::train {

/// Config, weights and processor of the model in a folder, until another model has taken them.
class TrainedBackbone {
 public:
  /// What the tasks say of their field `backbone`.
  static constexpr const char* kAbout =
      "a model that reads images, whose config and weights the backbone begins with and whose "
      "folder says how images are prepared (a detector's: how they are normalised); `freeze` "
      "backbone leaves it as it is";

  /// Errors: those of load_image_reader().
  explicit TrainedBackbone(const std::string& path)
      : path_(path), reader_(load_image_reader(path)) {}

  const ImageProcessor& processor() const { return reader_.processor; }
  /// What `backbone_config` says of it. Batch norms are frozen, as below detectors.
  Json config() const;
  /// Copies its weights to the parameters below `prefix` ("model.backbone."), by the names below
  /// its own base. A norm of the map that is read begins as it does. Errors: data, naming it, for
  /// a parameter that it has no weight for.
  void copy_weights(nn::Parameters& parameters, const std::string& prefix) const;

 private:
  std::string path_;
  ImageReader reader_;
};

/// Checks that a run that begins from a model is given no other backbone, and that what is given is
/// a model's folder. path: empty if none is given    Errors: usage; those of find_model_dir().
void check_backbone(const std::string& path, const RunPaths& paths);

}  // namespace heddle::train
