// Laying captions end to end.
#include "heddle/train/batches/caption_batch.h"

#include <algorithm>
#include <limits>

#include "heddle/base/error.h"

namespace heddle::train {

CaptionNumbers::CaptionNumbers(const CaptionIds& captions) {
  for (const auto& of_image : captions) for_each_ = std::max(for_each_, std::ssize(of_image));
  constexpr int64_t kNumbers = int64_t{std::numeric_limits<uint32_t>::max()} + 1;
  const int64_t images = std::ssize(captions);
  check(images <= kNumbers / for_each_, ErrorKind::data,
        "{} images, one of which has {} captions: of so many at most {} images can be told apart; "
        "give an image fewer captions",
        images, for_each_, kNumbers / for_each_);
}

void CaptionBatch::add(int64_t image, std::span<const int32_t> ids,
                       const EncoderDecoderFacts& facts, uint32_t number) {
  target_in.push_back(static_cast<int32_t>(facts.decoder_start_token_id));
  target_in.insert(target_in.end(), ids.begin(), ids.end());
  target_out.insert(target_out.end(), ids.begin(), ids.end());
  target_out.push_back(static_cast<int32_t>(facts.eos_token_id));
  lengths.push_back(std::ssize(ids) + 1);
  images.push_back(static_cast<int32_t>(image));
  for (uint32_t position = 0; position <= ids.size(); ++position) {
    rows.sample.push_back(number), rows.position.push_back(position);
  }
}

}  // namespace heddle::train
