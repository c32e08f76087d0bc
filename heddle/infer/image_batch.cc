// Where the pixels of each image of a batch begin, and filling them.
#include "heddle/infer/image_batch.h"

#include <numeric>

#include "heddle/base/parallel.h"
#include "heddle/models/captioner.h"

namespace heddle {
namespace {

std::vector<ImageSize> sizes_of(std::span<const Image> images) {
  std::vector<ImageSize> sizes;
  for (const Image& image : images) sizes.push_back(image.size());
  return sizes;
}

}  // namespace

ImageReader load_image_reader(const std::string& path) {
  ImageReader reader{load_model(path), {}};
  check(reader.loaded.model->as<Captioner>() == nullptr, ErrorKind::data,
        "{}: this {} writes captions: heddle caption IMAGE --page FILE.html shows them and where "
        "each word looked, heddle forward --input FILE (pixel_values, decoder_input_ids) gives all "
        "maps; a model that gives images classes, objects or states is needed here",
        path, reader.loaded.type);
  reader.model();  // says what is wanted
  reader.processor = ImageProcessor::of_folder(reader.loaded.path);
  return reader;
}

void check_takes(const Model& model, const ImageProcessor& processor, ImageSize image,
                 const std::string& path) {
  const ImageSize size = processor.fitted(image);
  const auto* const captioner = model.as<Captioner>();
  try {
    static_cast<void>(captioner ? captioner->grid(size) : model.need<ImageModel>(path).grid(size));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::data) throw;
    fail(ErrorKind::data, "{}: {}", path, error.what());
  }
}

ImageBatch::ImageBatch(std::vector<ImageSize> sizes, std::vector<uint32_t> samples)
    : sizes_(std::move(sizes)),
      samples_(std::move(samples)),
      segments_(nn::image_segments(sizes_)),
      x_(Tensor::empty({segments_.rows(), Image::kChannels}, DType::f32)) {
  if (!samples_.empty()) return;
  samples_.resize(sizes_.size());
  std::iota(samples_.begin(), samples_.end(), 0u);
}

ImageBatch::ImageBatch(std::span<const Image> images, const ImageProcessor& processor)
    : ImageBatch(sizes_of(images)) {
  parallel_for(size(), [&](int64_t i) { lay(i, images[i], processor); });
}

void ImageBatch::lay(int64_t i, const Image& image, const ImageProcessor& processor) {
  check(image.size() == sizes_[i], ErrorKind::internal, "an image of {} x {} in room for {} x {}",
        image.height, image.width, sizes_[i].height, sizes_[i].width);
  processor.normalize(image, x_.data<float>() + segments_.begin(i) * Image::kChannels);
}

std::vector<size_t> pass_ends(std::span<const Image> images, int64_t most_pixels) {
  std::vector<size_t> ends;
  int64_t pixels = 0;
  for (size_t i = 0; i < images.size(); ++i) {
    const int64_t own = images[i].height * images[i].width;
    if (pixels > 0 && pixels + own > most_pixels) ends.push_back(i), pixels = 0;
    pixels += own;
  }
  if (!images.empty()) ends.push_back(images.size());
  return ends;
}

}  // namespace heddle
