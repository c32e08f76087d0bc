// How well boxes are found: COCO's average precision and recall, equal to pycocotools.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "heddle/train/scores.h"
#include "heddle/vision/boxes.h"

namespace heddle::train {

/// An image's objects, and what a detector found there.
struct DetectedImage {
  int64_t id = 0;  ///< images count in the order of their ids, which decides between equal scores
  std::vector<LabelledBox> truths = {};
  std::vector<ScoredBox> found = {};

  template <class V>
  void parts(V& v) {
    v(id, truths, found);
  }
};

/// A mean is -1 where there is nothing to find: no object of a size, or of a class.
struct DetectionScores {
  double ap = -1, ap50 = -1, ap75 = -1;  ///< over IoU of 0.50, 0.55 .. 0.95; of 0.5; of 0.75
  double ap_small = -1, ap_medium = -1, ap_large = -1;  ///< to 32² pixels, to 96², beyond
  double ar1 = -1, ar10 = -1, ar100 = -1;  ///< recall with so many boxes an image, over IoU
  double ar_small = -1, ar_medium = -1, ar_large = -1;  ///< of 100 boxes
  std::vector<double> class_ap, class_ap50;             ///< of each class
  /// Of each class the precision at a recall of 0, 0.01 .. 1 for an IoU of 0.5; empty for a class
  /// without objects.
  std::vector<std::vector<double>> class_curve50;

  /// COCO's twelve in its order, by the names "map", "map_50", "map_75", "map_small", ..,
  /// "mar_1", ..
  std::vector<Metric> metrics() const;
};

/// Scores of the boxes found in images, of so many classes, by COCO's rules: of a class and an
/// image the 100 surest count, the surest take their objects first, each that of the largest IoU
/// among those not taken; boxes in a crowd, and those whose size is not asked for, count as
/// nothing; precision at 101 recalls, made falling. The same for any number of threads. Errors:
/// data for a label that is no class, or a score or corner that is not finite. Source:
/// pycocotools 2.0, cocoeval.py; cocodataset.org, detection evaluation.
DetectionScores score_detections(std::span<const DetectedImage> images, int64_t classes);

}  // namespace heddle::train
