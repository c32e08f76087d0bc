// Images as PNG in the page itself, and the boxes over them.
#include "heddle/inspect/pages/detection_page.h"

#include <algorithm>
#include <cmath>

#include "heddle/base/rounded.h"
#include "heddle/text/strings/strings.h"
#include "heddle/vision/resize.h"

namespace heddle::inspect {

Image page_image(const Image& image) {
  const int64_t edge = std::max(image.height, image.width);
  if (edge <= kPageEdge) return image;
  const auto side = [&](int64_t n) { return std::max<int64_t>(1, n * kPageEdge / edge); };
  return resize(image, side(image.height), side(image.width), Resample::bilinear);
}

DetectionPage::DetectionPage(const std::string& model, const std::vector<std::string>& labels,
                             double threshold)
    : ImagesPage(
          {.title = "Objects of images",
           .data = Json::object({{"model", model}, {"labels", labels}, {"threshold", threshold}}),
           .scripts = {"texts.js", "boxes.js", "detect.js"}}) {}

void DetectionPage::add(const std::string& path, ImageSize size, const Image& shown,
                        std::span<const ScoredBox> boxes) {
  add_image([&] {
    Json one = Json::object({{"path", path}, {"width", size.width}, {"height", size.height}});
    one["png"] = base64_text(encode_png(page_image(shown)));
    one["boxes"] = json_list(boxes, [](const ScoredBox& b) {
      return Json(Json::Array{b.label, rounded(b.score, 4), rounded(b.box.x0, 1),
                              rounded(b.box.y0, 1), rounded(b.box.x1, 1), rounded(b.box.y1, 1)});
    });
    return one;
  });
}

}  // namespace heddle::inspect
