// The images in the report of a run: some that are trained on, and the worst mistakes of the last
// validation. How many and how large they are bounds the page.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "corpora/captions/caption_scene.h"
#include "heddle/base/json/json.h"
#include "heddle/data/captions.h"
#include "heddle/train/metrics/detection_mistakes.h"
#include "heddle/vision/box_augment.h"
#include "heddle/vision/image.h"

namespace heddle::train {

/// RUN/cache/IMAGES: what the report of a run shows, JSON as pages/report_images.js says.
inline constexpr const char* kShownImagesName = "shown_images.json";
void write_shown_images(const std::string& run, const Json& shown);

/// Longest sides in pixels: of images that are to be told apart, and of those in which more is to
/// be seen.
inline constexpr int64_t kShownEdge = 64, kShownLargeEdge = 128;
/// An image as a page shows it: {"src": a data: URI of a PNG file, "width", "height"}; larger ones
/// shrunk to `longest`.
Json shown_image(const Image& image, int64_t longest = kShownEdge);

// --- objects ---

/// Boxes that an image has at most, of true ones and of those that were seen.
inline constexpr size_t kMostShownBoxes = 100;
/// shown_image() of the larger kind, with "boxes" of its objects, [{"label", "box": [left, top,
/// right, bottom]}], in pixels of what is shown. Crowds have none.
Json shown_objects(const BoxedImage& one);
/// shown_image() of the larger kind, with "boxes" of the true objects, {.., "missed": true}, and of
/// those that were "found", {.., "score", "wrong": true}; mistakes first. `missed` and `wrong`
/// stand where they are true.
Json shown_detections(const Image& image, const DetectionMistakes& mistakes);

// --- captions ---

/// Captions that an image has at most, and characters of each.
inline constexpr size_t kMostShownCaptions = 5;
inline constexpr int64_t kMostShownCharacters = 200;
/// {"image", "name", "captions": [the first of them]}
Json shown_captions(const CaptionSet& set, int64_t i);
/// The same with "written" of it: [{"text", "truth": what is so in its place; absent of what is no
/// sentence of the grammar}].
Json shown_untruths(const CaptionSet& set, int64_t i, std::span<const std::string> texts,
                    const CaptionScene& scene);
/// Of images of which nothing is known but their captions, what was written of each, [{..,
/// "written":
/// [{"text", "chrf": 0 to 100, by the captions that it has}]}]: the least alike first.
Json shown_writing(const CaptionSet& set, std::span<const int64_t> images,
                   std::span<const std::string> texts);

}  // namespace heddle::train
