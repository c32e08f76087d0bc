// Boxes that are sure, object by object.
#include "heddle/train/metrics/detection_mistakes.h"

#include <functional>
#include <iterator>

namespace heddle::train {
namespace {

bool is_in_crowd(const ScoredBox& box, const DetectedImage& image) {
  return std::ranges::any_of(image.truths, [&](const LabelledBox& truth) {
    return truth.is_crowd && truth.label == box.label &&
           intersection(box.box, truth.box).area() >= kSureOverlap * box.box.area();
  });
}

// The number of the object that is still missed and the box's, or as many as there are.
size_t object_of(const ScoredBox& box, const DetectionMistakes& so_far) {
  size_t chosen = so_far.truths.size();
  double largest = 0;
  for (size_t t = 0; t < so_far.truths.size(); ++t) {
    const LabelledBox& truth = so_far.truths[t];
    if (!so_far.is_missed[t] || truth.label != box.label) continue;
    const double overlap = iou(box.box, truth.box);
    if (overlap < kSureOverlap || overlap <= largest) continue;
    largest = overlap;
    chosen = t;
  }
  return chosen;
}

}  // namespace

DetectionMistakes mistakes_of(const DetectedImage& image) {
  DetectionMistakes found;
  std::ranges::copy_if(image.truths, std::back_inserter(found.truths),
                       [](const LabelledBox& truth) { return !truth.is_crowd; });
  std::ranges::copy_if(image.found, std::back_inserter(found.sure),
                       [](const ScoredBox& box) { return box.score >= kSureScore; });
  std::ranges::stable_sort(found.sure, std::greater(), &ScoredBox::score);
  found.is_missed.resize(found.truths.size(), true);
  for (const ScoredBox& box : found.sure) {
    const size_t object = object_of(box, found);
    const bool is_right = object < found.truths.size();
    if (is_right) found.is_missed[object] = false;
    found.is_wrong.push_back(!is_right && !is_in_crowd(box, image));
  }
  return found;
}

std::vector<DetectionMistakes> worst_detections(std::span<const DetectedImage> images,
                                                size_t most) {
  std::vector<DetectionMistakes> worst;
  for (size_t i = 0; i < images.size(); ++i) {
    DetectionMistakes one = mistakes_of(images[i]);
    if (one.missed() + one.wrong() == 0) continue;
    one.image = static_cast<int64_t>(i);
    worst.push_back(std::move(one));
  }
  std::ranges::stable_sort(worst, std::greater(),
                           [](const DetectionMistakes& one) { return one.missed() + one.wrong(); });
  worst.resize(std::min(worst.size(), most));
  return worst;
}

}  // namespace heddle::train
