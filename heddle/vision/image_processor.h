// What becomes of an image before a model sees it.
#pragma once

#include <array>

#include "heddle/base/json/json.h"
#include "heddle/vision/resize.h"

namespace heddle {

/// Where transformers looks for it in a model's folder.
inline constexpr const char* kPreprocessorName = "preprocessor_config.json";

/// An image is resized, cropped, scaled and normalised, in this order, each if asked for; what a
/// model was trained with stands in its folder, and nothing of it is assumed.
/// Source: transformers 5, image_processing_backends.py; timm 1.0, data/transforms_factory.py.
struct ImageProcessor {
  bool do_resize = false;
  ImageSize size;             ///< what it is squeezed to; else the edges below say
  int64_t shortest_edge = 0;  ///< its shape stays, the shorter edge gets this length
  int64_t longest_edge = 0;   ///< if not 0: no edge gets longer
  Resample resample = Resample::bilinear;

  bool do_center_crop = false;
  ImageSize crop_size;
  bool crops_as_torchvision = false;  ///< an odd margin's half is rounded to even, else down

  bool do_rescale = true;
  double rescale_factor = 1.0 / 255;
  bool do_normalize = false;
  std::array<double, Image::kChannels> image_mean = {0, 0, 0}, image_std = {1, 1, 1};

  /// Reads preprocessor_config.json of a folder of Hugging Face's, or of timm's the pretrained_cfg
  /// in config.json. Errors: data if there is neither, or one lacks a field or has one that cannot
  /// be followed: the field is named.
  static ImageProcessor of_folder(const std::string& folder);
  /// The content of preprocessor_config.json; `source`, a path, opens messages.
  static ImageProcessor of_hub(const Json& json, const std::string& source);
  /// The content of timm's pretrained_cfg.
  static ImageProcessor of_timm(const Json& json, const std::string& source);
  /// As preprocessor_config.json has it; of_hub() gives the same back but for crops_as_torchvision.
  Json to_json() const;
  /// As timm's pretrained_cfg has it, for a model that is made for images of a size. Errors: data
  /// for what timm does not do: other scales than 1/255, another shape than a square's without
  /// squeezing.
  Json to_timm(ImageSize made_for) const;

  /// Height and width that an image is resized to, before it is cropped.
  ImageSize resized(ImageSize image) const;
  /// Resized and cropped.
  Image fit(const Image& image) const;
  /// The size that fit() gives an image of this size.
  ImageSize fitted(ImageSize image) const { return do_center_crop ? crop_size : resized(image); }
  /// The part of an image of this size that fit() keeps, in shares of its width and height: left,
  /// top, right, bottom; below 0 and above 1 where there is padding.
  std::array<double, 4> kept(ImageSize image) const;
  /// Writes an image that fits, scaled and normalised, as floats: [height, width, 3].
  void normalize(const Image& image, float* to) const;
};

}  // namespace heddle
