// Images of requests, as bodies hold them.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "heddle/serve/api/exchange.h"
#include "heddle/vision/image_processor.h"

namespace heddle::serve {

/// Images that were sent, which nothing has decoded yet.
struct SentImages {
  Json options;                    ///< the members beside "image"
  std::vector<std::string> files;  ///< JPEG or PNG

  /// What messages call image i: "image 1".
  static std::string name(size_t i) { return fmt::format("image {}", i + 1); }
  /// Of image i as its header has it. Errors: Refusal if it is no image, or has more pixels than
  /// are taken.
  ImageSize size(const Exchange& e, size_t i) const;
  /// What it costs as tokens do to read image i of that size: its cells of 16 x 16 pixels, as it
  /// was sent or as it is resized, and a pass. Errors: Refusal if it is resized to more pixels than
  /// are taken.
  static int64_t tokens(const Exchange& e, size_t i, ImageSize sent,
                        const ImageProcessor& processor);
  /// Image i as viewers show it, whose file is let go of. Errors: data if it is damaged.
  Image take(size_t i);
};

/// Of a body that is one image, whose options stand in the query, or of a JSON object with "image":
/// a file in base64 or a data URL, or several. Errors: Refusal, also for options that are none of
/// these.
SentImages sent_images(Exchange& e, std::initializer_list<const char*> options);

}  // namespace heddle::serve
