// What tasks and commands ask of models that find objects in images.
#pragma once

#include "heddle/models/image_model.h"

namespace heddle {

/// How the queries of a detector are matched with the objects of an image, and what a query that is
/// wrong costs. Source: Carion et al. 2020, section 3.1.
struct SetLossWeights {
  double class_cost = 1, bbox_cost = 5, giou_cost = 2;          ///< of the matching
  double bbox_loss_coefficient = 5, giou_loss_coefficient = 2;  ///< of the loss
  double eos_coefficient = 0.1;  ///< weight of a query whose class is no object
};

struct DetectorFacts {
  int64_t queries = 100;  ///< of an image: as many objects can be found
  int64_t layers = 0;     ///< of the decoder, each of which says what it sees
  SetLossWeights loss;
};

/// What some layers of the decoder see, layer after layer, of each the queries of each image.
struct ObjectPredictions {
  /// [layers * images * queries, labels + 1] f32; the last class is no object.
  Tensor logits;
  /// [layers * images * queries, 4] f32: centre x and y, width and height, as shares of the
  /// image's.
  Tensor boxes;
};

class Detector : public ImageModel {
 public:
  static constexpr const char* kAbility = "finds objects in images";
  static constexpr Head kHead = Head::objects;

  Detector(const ImageFacts& facts, const DetectorFacts& detector)
      : ImageModel(facts), detector_(detector) {}

  const DetectorFacts& detector() const { return detector_; }
  /// What the last layer sees or, if `all`, each. Errors: those of hidden().
  virtual ObjectPredictions predict(const ImageRows& images, bool all, const Run& run) const = 0;
  /// A query's state is a row of hidden().
  Segments tokens(const ImageRows& images) const override {
    return Segments::uniform(std::ssize(*images.sizes), detector_.queries);
  }

 private:
  DetectorFacts detector_;
};

}  // namespace heddle
