// Pixels and packed weights in the page itself.
#include "heddle/inspect/pages/caption_page.h"

#include <cmath>

#include "heddle/inspect/images/image_subject.h"
#include "heddle/inspect/pages/detection_page.h"

namespace heddle::inspect {
namespace {

constexpr int64_t kLongestSide = 512;

Json word_json(const SeenWord& word) {
  return Json::object({{"text", word.text}, {"weights", pack_weights(word.weights)}});
}

Json caption_json(const ShownCaption& caption) {
  return Json::object({{"text", caption.text},
                       {"score", std::round(caption.score * 1e4) / 1e4},
                       {"words", json_list(caption.words, word_json)}});
}

}  // namespace

CaptionPage::CaptionPage(const std::string& model)
    : page_{.title = "Captions of images",
            .data = {},
            .scripts = {"texts.js", "image_canvas.js", "caption.js"}} {
  page_.data["model"] = model;
  page_.data["count"] = 0;
  page_.data["images"] = Json::array();
}

void CaptionPage::add(const std::string& path, const Image& image, ImageSize grid,
                      std::span<const ShownCaption> captions) {
  page_.data["count"] = ++count_;
  if (count_ > kPageImages) return;
  page_.data["images"].push_back(Json::object({{"path", path},
                                               {"height", image.height},
                                               {"width", image.width},
                                               {"shown", image_json(image, kLongestSide)},
                                               {"rows", grid.height},
                                               {"columns", grid.width},
                                               {"captions", json_list(captions, caption_json)}}));
}

}  // namespace heddle::inspect
