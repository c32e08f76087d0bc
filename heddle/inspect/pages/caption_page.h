// The page of heddle caption: images, their captions, and where each word looked.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "heddle/infer/decoding/caption.h"
#include "heddle/inspect/pages/images_page.h"
#include "heddle/vision/image.h"

namespace heddle::inspect {

/// A caption with the words of seen_words(), of a model without attention none.
struct ShownCaption {
  std::string text;
  double score = 0;
  std::vector<SeenWord> words;
};

class CaptionPage : public ImagesPage {
 public:
  explicit CaptionPage(const std::string& model);
  /// grid: how the weights of words lie over the image; captions: best first
  void add(const std::string& path, const Image& image, ImageSize grid,
           std::span<const ShownCaption> captions);
};

}  // namespace heddle::inspect
