// The page of heddle detect: images with boxes over them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "heddle/inspect/pages/images_page.h"
#include "heddle/vision/boxes.h"
#include "heddle/vision/image.h"

namespace heddle::inspect {

inline constexpr int64_t kPageEdge = 1024;  ///< larger images are shrunk to it

/// An image of a size that a page can hold.
Image page_image(const Image& image);

class DetectionPage : public ImagesPage {
 public:
  /// threshold: least score of the boxes that are shown at first.
  DetectionPage(const std::string& model, const std::vector<std::string>& labels, double threshold);
  /// size: of the image; shown: the image, or what page_image() makes of it; boxes: all, in pixels
  /// of the image, surest first
  void add(const std::string& path, ImageSize size, const Image& shown,
           std::span<const ScoredBox> boxes);
};

}  // namespace heddle::inspect
