// Pixels and packed weights in the page itself.
#include "heddle/inspect/pages/caption_page.h"

#include <cmath>

#include "heddle/base/rounded.h"
#include "heddle/inspect/images/image_subject.h"

namespace heddle::inspect {
namespace {

constexpr int64_t kLongestSide = 512;

Json word_json(const SeenWord& word) {
  Json json = Json::object({{"text", word.text}, {"weights", pack_weights(word.weights)}});
  if (word.gate) json["gate"] = rounded(double{*word.gate}, 4);
  return json;
}

Json caption_json(const SeenCaption& caption) {
  return Json::object({{"text", caption.text},
                       {"score", rounded(caption.score, 4)},
                       {"words", json_list(caption.words, word_json)}});
}

}  // namespace

CaptionPage::CaptionPage(const std::string& model)
    : ImagesPage({.title = "Captions of images",
                  .data = Json::object({{"model", model}}),
                  .scripts = {"texts.js", "image_canvas.js", "captioned.js", "caption.js"}}) {}

void CaptionPage::add(const std::string& path, const Image& image, ImageSize grid,
                      std::span<const SeenCaption> captions) {
  add_image([&] {
    return Json::object({{"path", path},
                         {"height", image.height},
                         {"width", image.width},
                         {"shown", image_json(image, kLongestSide)},
                         {"rows", grid.height},
                         {"columns", grid.width},
                         {"captions", json_list(captions, caption_json)}});
  });
}

}  // namespace heddle::inspect
