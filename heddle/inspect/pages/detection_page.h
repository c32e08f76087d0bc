// The page of heddle detect: images with boxes over them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "heddle/inspect/pages/page.h"
#include "heddle/vision/boxes.h"
#include "heddle/vision/image.h"

namespace heddle::inspect {

/// What a page holds of many images; it says how many were left out.
inline constexpr int64_t kPageImages = 100;
inline constexpr int64_t kPageEdge = 1024;  ///< larger images are shrunk to it

/// An image of a size that a page can hold.
Image page_image(const Image& image);

class DetectionPage {
 public:
  /// threshold: least score of the boxes that are shown at first.
  DetectionPage(const std::string& model, const std::vector<std::string>& labels, double threshold);
  /// size: of the image; shown: the image, or what page_image() makes of it; boxes: all, in pixels
  /// of the image, surest first
  void add(const std::string& path, ImageSize size, const Image& shown,
           std::span<const ScoredBox> boxes);

  const Page& page() const { return page_; }
  int64_t images() const { return page_.data.at("images").as_array().size(); }  ///< on the page

 private:
  Page page_;
  int64_t count_ = 0;
};

}  // namespace heddle::inspect
