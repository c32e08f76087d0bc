// What tasks and commands ask of models that find objects in images.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "heddle/models/image_model.h"

namespace heddle {

/// How the queries of a detector are matched with the objects of an image, and what a query that is
/// wrong costs. Source: Carion et al. 2020, section 3.1.
struct SetLossWeights {
  std::string class_loss = "cross_entropy";                     ///< or mal, see matchability_loss()
  double class_cost = 1, bbox_cost = 5, giou_cost = 2;          ///< of the matching
  double bbox_loss_coefficient = 5, giou_loss_coefficient = 2;  ///< of the loss
  double eos_coefficient = 0.1;  ///< weight of a query whose class is no object

  /// Whether classes are told each by itself, no object by none of them.
  bool has_sigmoids() const { return class_loss == "mal"; }
  template <class V>
  void fields(V& v) {
    v("class_loss", class_loss,
      "cross_entropy: over the classes and no object; mal: each class by itself, the more the "
      "better the box lies (matchability-aware)",
      one_of({"cross_entropy", "mal"}));
    v("class_cost", class_cost, "of a class in the matching", at_least(0));
    v("bbox_cost", bbox_cost, "of the distance of a box in the matching", at_least(0));
    v("giou_cost", giou_cost, "of the generalized IoU in the matching", at_least(0));
    v("bbox_loss_coefficient", bbox_loss_coefficient, "of the distance in the loss", at_least(0));
    v("giou_loss_coefficient", giou_loss_coefficient, "of the generalized IoU in the loss",
      at_least(0));
    v("eos_coefficient", eos_coefficient,
      "weight of a query that is to see no object, in cross entropy", above(0));
  }
};

/// Queries of training alone that are to restore objects from noise: each group has all of an
/// image's objects once, and sees none of the other queries.
/// Source: Li et al. 2022, "DN-DETR: Accelerate DETR Training by Introducing Query DeNoising".
struct DenoisingWeights {
  int64_t groups = 0;  ///< 0: there are none
  double box_noise = 0.4, label_noise = 0.2;

  template <class V>
  void fields(V& v) {
    v("denoising_groups", groups,
      "times that each object is shown to training with noise, to be restored; 0: none",
      between(0, 1000));
    v("denoising_box_noise", box_noise, "of its box, as a share of its edges", from_below(0, 1));
    v("denoising_label_noise", label_noise, "probability that its class is drawn anew",
      between(0, 1));
  }
};

struct DetectorFacts {
  int64_t queries = 100;  ///< of an image: as many objects can be found
  int64_t layers = 0;     ///< of the decoder, each of which says what it sees
  SetLossWeights loss;
  DenoisingWeights denoising;
};

/// What some layers of the decoder see, layer after layer, of each the queries of each image.
struct ObjectPredictions {
  /// [layers * images * queries, labels + 1] f32, of a softmax whose last class is no object; or,
  /// where each label has a sigmoid, [.., labels].
  Tensor logits;
  /// [layers * images * queries, 4] f32: centre x and y, width and height, as shares of the
  /// image's.
  Tensor boxes;
  bool has_sigmoids = false;

  int64_t labels() const { return logits.size(1) - (has_sigmoids ? 0 : 1); }
};

/// The likeliest class of a query that is an object, and its probability; between equals the first.
struct SeenClass {
  int32_t label = 0;
  double probability = 0;  ///< not finite if the logits are not
};
SeenClass likeliest_class(const ObjectPredictions& seen, int64_t row);

/// Objects of a batch with noise.
struct NoisedObjects {
  int64_t groups = 0;
  std::vector<int64_t> counts = {};  ///< objects of each image
  /// [groups * all objects], image by image, group by group; boxes as of ObjectPredictions.
  std::vector<int32_t> labels = {};
  std::vector<std::array<float, 4>> boxes = {};
  /// What predict() leaves here: of each layer that it is asked for as many rows.
  ObjectPredictions restored = {};
};

class Detector : public ImageModel {
 public:
  static constexpr const char* kAbility = "finds objects in images";
  static constexpr Head kHead = Head::objects;

  Detector(const ImageFacts& facts, const DetectorFacts& detector)
      : ImageModel(facts), detector_(detector) {}

  const DetectorFacts& detector() const { return detector_; }
  /// What the last layer sees or, if `all`, each. `noised`: what else is to be seen in the same
  /// pass; null: nothing. Errors: those of hidden().
  virtual ObjectPredictions predict(const ImageRows& images, bool all, const Run& run,
                                    NoisedObjects* noised = nullptr) const = 0;
  /// A query's state is a row of hidden().
  Segments tokens(const ImageRows& images) const override {
    return Segments::uniform(std::ssize(*images.sizes), detector_.queries);
  }

 private:
  DetectorFacts detector_;
};

}  // namespace heddle
