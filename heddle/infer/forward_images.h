// One pass over images, under Hugging Face's names and shapes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "heddle/infer/forward.h"
#include "heddle/infer/image_batch.h"

namespace heddle {

/// Images as transformers takes them: of one size, or padded to one at their right and below.
struct PixelValues {
  std::vector<int64_t> shape;  ///< [batch, channels, height, width]
  std::vector<float> values;
  std::vector<ImageSize> sizes;  ///< of each image, without its padding
  bool is_from_files = false;    ///< then they are written among the outputs
};

/// The tensor pixel_values and, where some are padded, pixel_mask [batch, height, width]: the ones
/// at the top left are the image. Errors: data, naming file and shape, if pixel_values is missing
/// or has another rank; data if pixel_mask has another shape, or its ones are no such rectangle.
PixelValues read_pixel_values(const SafetensorsFile& file);
/// Fitted images, normalised. Errors: data, naming the path, for an image of another size than the
/// first.
PixelValues pixel_values_of(std::span<const Image> images, std::span<const std::string> paths,
                            const ImageProcessor& processor);

/// Images begin .. end - 1 as models take them: channels last, image after image, without padding.
class PixelBatch {
 public:
  PixelBatch(const PixelValues& pixels, int64_t begin, int64_t end);
  /// A view.
  ImageRows rows() const { return {.x = x_, .segments = &segments_, .sizes = &sizes_}; }

 private:
  std::vector<ImageSize> sizes_;
  Segments segments_;
  Tensor x_;
};

/// Errors: data if the images have other channels than the model takes.
void check_channels(const PixelValues& pixels, const ImageFacts& facts);

/// Writes to `path`, f32, what Model::forward() gives: of rows of states [batch, rows, width], of
/// images [batch, width]; with `all` also hidden_states.i [batch, rows, width] and attentions.i
/// [batch, heads, queries, keys] (of models with windows [batch * windows, ..], as transformers
/// has it). States of a ResNet are [batch, channels, height, width], its pooler_output [batch,
/// channels, 1, 1]. Padding is left out, so each image gives what it gives alone, and boxes are
/// shares of the image, not of what it was padded to; where sizes differ, what an image has fewer
/// of (rows, queries, keys, windows) ends in zeros. Errors: data if the model takes no images of
/// that size or so many channels; system if the file cannot be written.
void forward_images(const ImageModel& model, const PixelValues& pixels, const std::string& path,
                    const ForwardOptions& options);

}  // namespace heddle
