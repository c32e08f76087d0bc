// Captions of images laid end to end, and the numbers that they draw their masks by.
#pragma once

#include <span>
#include <vector>

#include "heddle/models/encoder_decoder.h"
#include "heddle/ops/dropout.h"

namespace heddle::train {

/// The ids of captions without the end: [images][captions of each].
using CaptionIds = std::vector<std::vector<std::vector<int32_t>>>;

/// A number for each caption of a set, no other's. Masks of dropout are drawn by it.
class CaptionNumbers {
 public:
  /// Errors: data if the captions of one image are so many that 32 bits do not number all images'.
  explicit CaptionNumbers(const CaptionIds& captions);
  uint32_t of(int64_t image, size_t caption) const {
    return static_cast<uint32_t>(image * for_each_ + static_cast<int64_t>(caption));
  }

 private:
  int64_t for_each_ = 64;  // numbers that an image has
};

/// Captions of the images of a batch, end to end.
struct CaptionBatch {
  std::vector<int32_t> target_in, target_out;  ///< [rows] what the decoder reads, is to write
  std::vector<int64_t> lengths;                ///< of each caption, its end counted
  std::vector<int32_t> images;                 ///< of each caption: its image in the batch
  RowIds rows = {};

  /// A caption of an image. number: see CaptionNumbers
  void add(int64_t image, std::span<const int32_t> ids, const EncoderDecoderFacts& facts,
           uint32_t number);
};

}  // namespace heddle::train
