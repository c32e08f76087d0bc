// Images as PNG in JSON, with boxes or captions beside them.
#include "heddle/train/tasks/images/shown_images.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "heddle/base/files/files.h"
#include "heddle/base/rounded.h"
#include "heddle/base/utf8.h"
#include "heddle/text/strings/strings.h"
#include "heddle/train/metrics/metrics.h"
#include "heddle/vision/resize.h"

namespace heddle::train {
namespace {

// Corners inside of the image, in pixels of what is shown of it.
Json corners_json(const Box& box, ImageSize image, const Json& shown) {
  const ImageSize size{shown.get_int("height"), shown.get_int("width")};
  const Box there = resized(box, image, size);
  const auto inside = [](double x, int64_t side) {
    return rounded(std::clamp(x, 0.0, static_cast<double>(side)), 1);
  };
  return Json::Array{inside(there.x0, size.width), inside(there.y0, size.height),
                     inside(there.x1, size.width), inside(there.y1, size.height)};
}

// The places of those that are marked, then of the others; at most kMostShownBoxes.
std::vector<size_t> marked_first(const std::vector<bool>& is_marked) {
  std::vector<size_t> order(is_marked.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_partition(order, [&](size_t i) { return is_marked[i]; });
  order.resize(std::min(order.size(), kMostShownBoxes));
  return order;
}

Json truths_json(std::span<const LabelledBox> truths, const std::vector<bool>& is_missed,
                 ImageSize image, const Json& shown) {
  Json boxes = Json::array();
  for (const size_t i : marked_first(is_missed)) {
    Json one = Json::object(
        {{"label", truths[i].label}, {"box", corners_json(truths[i].box, image, shown)}});
    if (is_missed[i]) one["missed"] = true;
    boxes.push_back(std::move(one));
  }
  return boxes;
}

Json shortened_texts(std::span<const std::string> captions) {
  Json some = Json::array();
  for (const std::string& text : captions.first(std::min(captions.size(), kMostShownCaptions))) {
    some.push_back(shortened(text, kMostShownCharacters));
  }
  return some;
}

}  // namespace

void write_shown_images(const std::string& run, const Json& shown) {
  const std::string folder = join_path(run, "cache");
  make_directories(folder);  // images that are drawn are not kept
  write_file_atomic(join_path(folder, kShownImagesName), shown.dump() + "\n");
}

Json shown_image(const Image& image, int64_t longest) {
  const int64_t edge = std::max(image.height, image.width);
  const auto shrunk = [&](int64_t side) { return std::max<int64_t>(1, side * longest / edge); };
  const Image shown = edge <= longest ? image
                                      : resize(image, shrunk(image.height), shrunk(image.width),
                                               Resample::bilinear);
  return Json::object({{"src", "data:image/png;base64," + base64_text(encode_png(shown))},
                       {"width", shown.width},
                       {"height", shown.height}});
}

// --- objects ---

Json shown_objects(const BoxedImage& one) {
  std::vector<LabelledBox> objects;
  std::ranges::copy_if(one.boxes, std::back_inserter(objects),
                       [](const LabelledBox& box) { return !box.is_crowd; });
  Json shown = shown_image(one.image, kShownLargeEdge);
  shown["boxes"] = truths_json(objects, std::vector<bool>(objects.size()), one.image.size(), shown);
  return shown;
}

Json shown_detections(const Image& image, const DetectionMistakes& mistakes) {
  Json shown = shown_image(image, kShownLargeEdge);
  shown["boxes"] = truths_json(mistakes.truths, mistakes.is_missed, image.size(), shown);
  Json found = Json::array();
  for (const size_t i : marked_first(mistakes.is_wrong)) {
    const ScoredBox& box = mistakes.sure[i];
    Json one = Json::object({{"label", box.label},
                             {"box", corners_json(box.box, image.size(), shown)},
                             {"score", rounded(box.score, 4)}});
    if (mistakes.is_wrong[i]) one["wrong"] = true;
    found.push_back(std::move(one));
  }
  shown["found"] = std::move(found);
  return shown;
}

// --- captions ---

Json shown_captions(const CaptionSet& set, int64_t i) {
  return Json::object({{"image", shown_image(set.image(i).rgb(), kShownLargeEdge)},
                       {"name", set.path(i)},
                       {"captions", shortened_texts(set.captions(i))}});
}

Json shown_untruths(const CaptionSet& set, int64_t i, std::span<const std::string> texts,
                    const CaptionScene& scene) {
  Json shown = shown_captions(set, i);
  for (const std::string& text : texts) {
    Json one = Json::object({{"text", shortened(text, kMostShownCharacters)}});
    if (const std::optional<Caption> said = parse_caption(text)) {
      one["truth"] = correction_of(*said, scene);
    }
    shown["written"].push_back(std::move(one));
  }
  return shown;
}

Json shown_writing(const CaptionSet& set, std::span<const int64_t> images,
                   std::span<const std::string> texts) {
  std::vector<std::pair<double, Json>> all;
  for (size_t k = 0; k < images.size(); ++k) {
    std::vector<std::vector<std::string>> references;
    for (const std::string& caption : set.captions(images[k])) references.push_back({caption});
    const double chrf = rounded(corpus_chrf(texts.subspan(k, 1), references).score, 1);
    Json one = shown_captions(set, images[k]);
    one["written"].push_back(
        Json::object({{"text", shortened(texts[k], kMostShownCharacters)}, {"chrf", chrf}}));
    all.emplace_back(chrf, std::move(one));
  }
  std::ranges::stable_sort(all, {}, &std::pair<double, Json>::first);
  Json shown = Json::array();
  for (auto& [chrf, one] : all) shown.push_back(std::move(one));
  return shown;
}

}  // namespace heddle::train
