// The segments of images.
#include "heddle/nn/images/image_rows.h"

namespace heddle::nn {

void ImageRows::check(int64_t channels) const {
  heddle::check(segments != nullptr && sizes != nullptr && *segments == image_segments(*sizes),
                ErrorKind::shape, "the segments of the images are not those of their sizes");
  heddle::check(x.rank() == 2 && x.size(0) == segments->rows(), ErrorKind::shape,
                "{} images have {} pixels; there are values of shape {}", sizes->size(),
                segments->rows(), x.shape());
  heddle::check(x.size(1) == channels, ErrorKind::shape,
                "the images have {} channels; the model reads {}", x.size(1), channels);
  heddle::check(samples == nullptr || samples->size() == sizes->size(), ErrorKind::shape,
                "there are {} numbers of {} images", samples == nullptr ? 0 : samples->size(),
                sizes->size());
}

Segments image_segments(std::span<const ImageSize> sizes) {
  std::vector<int64_t> lengths;
  lengths.reserve(sizes.size());
  for (const ImageSize& size : sizes) lengths.push_back(size.height * size.width);
  return Segments::from_lengths(lengths);
}

std::shared_ptr<const RowIds> row_ids(const std::vector<uint32_t>* samples, const Segments& rows) {
  if (samples == nullptr) return nullptr;
  RowIds ids;
  ids.sample.reserve(static_cast<size_t>(rows.rows()));
  ids.position.reserve(static_cast<size_t>(rows.rows()));
  for (int64_t i = 0; i < rows.count(); ++i) {
    for (int64_t r = 0; r < rows.length(i); ++r) {
      ids.sample.push_back((*samples)[static_cast<size_t>(i)]);
      ids.position.push_back(static_cast<uint32_t>(r));
    }
  }
  return std::make_shared<const RowIds>(std::move(ids));
}

}  // namespace heddle::nn
