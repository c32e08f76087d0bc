// What goes wrong with detectors that learn nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "heddle/base/json/json.h"
#include "heddle/train/batches/object_images.h"
#include "heddle/train/tasks/images/set_loss.h"

namespace heddle::train {

class DetectorDoctor {
 public:
  DetectorDoctor() = default;
  /// Says what a model that does not look at its images could reach, and warns of images with more
  /// objects than there are queries. are_queries_near: they begin near each other (init_std < 1).
  DetectorDoctor(const ObjectCounts& counts, const DetectorFacts& facts, bool are_queries_near);

  /// What a validation shows, in the log too: class_loss beside blind_class_loss (see
  /// class_loss_floor(); absent where it has none), distance_loss, giou_loss (1 - GIoU),
  /// class_error (share of matched queries), query_overlap (mean IoU of two queries' boxes),
  /// most_objects of an image beside queries, and warnings, texts. is_warming_up: the learning rate
  /// is not at its peak yet, so nothing can be said of what is learned.
  Json examine(const SetLossSums& sums, bool is_warming_up) const;

 private:
  std::optional<double> floor_;  // of the class loss
  int64_t queries_ = 0, most_ = 0;
  bool are_queries_near_ = false;
  std::vector<std::string> warnings_;  // of the data
};

}  // namespace heddle::train
