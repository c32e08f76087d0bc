// A model that reads images, and images as it reads them: scaled, normalised, end to end.
#pragma once

#include <memory>
#include <vector>

#include "heddle/infer/loading/loaded_model.h"
#include "heddle/models/image_model.h"
#include "heddle/vision/image_processor.h"

namespace heddle {

struct ImageReader {
  LoadedModel loaded;
  ImageProcessor processor;
  const ImageModel& model() const { return loaded.model->need<ImageModel>(loaded.path); }
};

/// A model with the processor of its folder. Errors: those of load_model() and
/// ImageProcessor::of_folder(); data if it reads no images.
ImageReader load_image_reader(const std::string& path);

/// Whether a model that reads images, or writes captions of them, takes one of a size, which is
/// fitted first. Errors: data, beginning with `path`, the image's, if it does not.
void check_takes(const Model& model, const ImageProcessor& processor, ImageSize image,
                 const std::string& path);

/// A batch of images of any sizes. Images may be laid in it by several threads at once.
class ImageBatch {
 public:
  /// Room for images of these sizes; samples: their numbers, for dropout (none: 0, 1, ..).
  explicit ImageBatch(std::vector<ImageSize> sizes, std::vector<uint32_t> samples = {});
  /// Fitted images (ImageProcessor::fit()), normalised.
  ImageBatch(std::span<const Image> images, const ImageProcessor& processor);
  ImageBatch(const ImageBatch&) = delete;
  ImageBatch& operator=(const ImageBatch&) = delete;

  /// Lays image i, which has the size that there is room for, normalised.
  void lay(int64_t i, const Image& image, const ImageProcessor& processor);

  int64_t size() const { return std::ssize(sizes_); }
  std::span<const ImageSize> sizes() const { return sizes_; }
  /// [sum of height * width, 3]
  std::span<float> pixels() { return {x_.data<float>(), static_cast<size_t>(x_.elements())}; }
  /// A view.
  nn::ImageRows rows() const { return {x_, &segments_, nullptr, &sizes_, &samples_}; }

 private:
  std::vector<ImageSize> sizes_;
  std::vector<uint32_t> samples_;
  Segments segments_;
  Tensor x_;
};

/// Pixels that a pass over images should not go beyond: of so many the first map of a ResNet-50 has
/// 256 MB in f32.
inline constexpr int64_t kMostPassPixels = 4'000'000;

/// Images in passes of at most `most_pixels` each, or of one image: where each pass ends, rising;
/// the last is the number of images. An image's result is the same in any.
std::vector<size_t> pass_ends(std::span<const Image> images, int64_t most_pixels);

}  // namespace heddle
