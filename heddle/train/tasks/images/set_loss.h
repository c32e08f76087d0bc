// The loss of a detector: its queries are matched with the objects of an image one to one, each is
// to say what its object is and where; the others, that they see none.
// Sources: Carion et al. 2020, "End-to-End Object Detection with Transformers", section 3.1; of
// sigmoids Huang et al. 2024, "DEIM: DETR with Improved Matching for Fast Convergence".
#pragma once

#include <array>
#include <span>
#include <vector>

#include "heddle/base/rng.h"
#include "heddle/models/detector.h"

namespace heddle::train {

/// An object, as a detector is to see it.
struct ObjectTarget {
  int32_t label = 0;
  std::array<float, 4> box = {};  ///< centre x and y, width and height, as shares of the image's
};
/// Those of each image of a batch.
using BatchObjects = std::vector<std::vector<ObjectTarget>>;

/// How far a detector is from the objects of some images, by one layer: sums, from which the loss
/// of any number of images follows.
struct SetLossSums {
  /// Weighted cross entropy of all queries, and the weights; or, of sigmoids, their matchability
  /// loss, and the number of objects.
  double classes = 0, class_weight = 0;
  double distance = 0, giou = 0;  ///< L1 and 1 - generalized IoU of matched boxes
  int64_t objects = 0, matched = 0, images = 0;
  int64_t wrong = 0;   ///< matched queries whose likeliest class is another, or no object
  double overlap = 0;  ///< mean IoU of two queries of an image, summed over images
  SetLossSums& operator+=(const SetLossSums& o);

  double class_loss() const { return class_weight > 0 ? classes / class_weight : classes; }
  double distance_loss() const {
    return distance / static_cast<double>(std::max<int64_t>(1, objects));
  }
  double giou_loss() const { return giou / static_cast<double>(std::max<int64_t>(1, objects)); }
  double loss(const SetLossWeights& w) const {
    return class_loss() + w.bbox_loss_coefficient * distance_loss() +
           w.giou_loss_coefficient * giou_loss();
  }
  /// Share of matched queries that are wrong.
  double class_error() const {
    return static_cast<double>(wrong) / static_cast<double>(std::max<int64_t>(1, matched));
  }
};

/// Of one layer and each object the query that is to see it; -1 where there are more objects than
/// queries. [images][objects]
using Matches = std::vector<std::vector<int64_t>>;

/// The pairs whose costs are least in sum, of each layer: class_cost * -p(class) + bbox_cost * L1 -
/// giou_cost * generalized IoU. returns: [layers]. Images are matched on all threads; between
/// equals the lower query.
std::vector<Matches> match_objects(const ObjectPredictions& seen, int64_t layers, int64_t queries,
                                   const BatchObjects& objects, const SetLossWeights& weights);

/// The loss of a layer, without gradient; `overlap`, of all pairs of queries, if asked for.
SetLossSums judge(const ObjectPredictions& seen, int64_t layer, int64_t queries,
                  const BatchObjects& objects, const Matches& matches,
                  const SetLossWeights& weights, bool with_overlap = false);

/// The sum over layers, times `factor`, for backward(): cross entropy is a mean by weight over the
/// queries of the batch, the others, that of sigmoids among them, are divided by its number of
/// objects (at least 1). Which class loss it is, `seen` says.
/// returns: [1] f32    Errors: shape if sizes do not fit; data for a label that has no class.
Tensor set_loss(const ObjectPredictions& seen, int64_t queries, const BatchObjects& objects,
                std::span<const Matches> matches, const SetLossWeights& weights, float factor = 1);

/// The objects of a batch `groups` times each with noise, of its own random numbers; `keys`: of
/// each image. Errors: shape for another number of keys.
NoisedObjects with_noise(const BatchObjects& objects, std::span<const RngKey> keys, int64_t labels,
                         const DenoisingWeights& how);

/// The same loss over noised.restored, of so many layers, in which each query has its object.
/// objects: without noise    returns: [1] f32; undefined if there is no object
Tensor restoration_loss(const NoisedObjects& noised, int64_t layers, const BatchObjects& objects,
                        const SetLossWeights& weights, float factor = 1);

/// The cross entropy of classes of a model that answers all images alike, as well as can be: what a
/// detector that does not look at its images stays above. counts: objects of each class, of
/// `images` images.
double class_loss_floor(std::span<const int64_t> counts, int64_t images, int64_t queries,
                        double eos_coefficient);

}  // namespace heddle::train
