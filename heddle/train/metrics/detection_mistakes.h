// What a detector gets wrong in images: objects that it misses, boxes where nothing of the kind is.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "heddle/train/metrics/average_precision.h"

namespace heddle::train {

/// From which score on a box counts, and from which IoU on it is that of an object.
inline constexpr double kSureScore = 0.5, kSureOverlap = 0.5;

/// Of one image.
struct DetectionMistakes {
  int64_t image = 0;                     ///< its number among those that were judged
  std::vector<LabelledBox> truths = {};  ///< without crowds
  std::vector<ScoredBox> sure = {};      ///< boxes that count, the surest first
  std::vector<bool> is_missed = {};      ///< of each truth: no box is its
  std::vector<bool> is_wrong = {};       ///< of each sure box: no object is its

  int64_t missed() const { return std::ranges::count(is_missed, true); }
  int64_t wrong() const { return std::ranges::count(is_wrong, true); }
};

/// The surest box takes its object first: of those of its class that are not taken the one of the
/// largest IoU, if that is enough; of equal ones the first. A box at least half of which lies in a
/// crowd of its class is not wrong.
DetectionMistakes mistakes_of(const DetectedImage& image);

/// At most `most` images, those of the most missed objects and wrong boxes together first, of equal
/// ones the first image; none in which nothing is wrong.
std::vector<DetectionMistakes> worst_detections(std::span<const DetectedImage> images, size_t most);

}  // namespace heddle::train
