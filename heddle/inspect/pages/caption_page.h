// The page of heddle caption: images, their captions, and where each word looked.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "heddle/infer/decoding/caption.h"
#include "heddle/inspect/pages/images_page.h"
#include "heddle/vision/image.h"

namespace heddle::inspect {

class CaptionPage : public ImagesPage {
 public:
  explicit CaptionPage(const std::string& model);
  /// grid: how the weights of words lie over the image; captions: best first
  void add(const std::string& path, const Image& image, ImageSize grid,
           std::span<const SeenCaption> captions);
};

}  // namespace heddle::inspect
