// What pages of many images share: they hold the first, and say how many were left out.
#pragma once

#include <functional>

#include "heddle/inspect/pages/page.h"

namespace heddle::inspect {

/// What such a page holds of many images.
inline constexpr int64_t kPageImages = 100;

/// A page whose data have "images", and "count" of all that were added.
class ImagesPage {
 public:
  const Page& page() const { return page_; }
  int64_t images() const { return page_.data.at("images").as_array().size(); }  ///< on the page

 protected:
  explicit ImagesPage(Page page) : page_(std::move(page)) {
    page_.data["count"] = 0;
    page_.data["images"] = Json::array();
  }
  /// Counts an image, which `as_json` gives where the page has room.
  void add_image(const std::function<Json()>& as_json) {
    page_.data["count"] = ++count_;
    if (count_ <= kPageImages) page_.data["images"].push_back(as_json());
  }

 private:
  Page page_;
  int64_t count_ = 0;
};

}  // namespace heddle::inspect
