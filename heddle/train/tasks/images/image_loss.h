// The loss of images by their labels and by what a teacher says of them.
#pragma once

#include "heddle/train/scores.h"
#include "heddle/train/tasks/images/image_imitation.h"

namespace heddle::train {

/// What a batch's images show. Rows sum to 1.
struct ImageTargets {
  Tensor labels;              ///< [images, classes] f32: shares of the labels, without smoothing
  float smoothing = 0;        ///< share of each label that all classes get
  Tensor taught = {};         ///< [images, classes] f32: the teacher's; undefined: there is none
  double teacher_weight = 0;  ///< a, below
  double temperature = 1;     ///< t: that `taught` was made with
  bool is_divergence = false;
  const Imitation* imitation = nullptr;  ///< of `features`, if they are to be imitated
  Tensor features = {};                  ///< see Imitation::loss()
};

/// Adds the gradients of the summed loss to the parameters. The loss of an image is
///   (1 - a) CE(labels, own head) + a T(taught, distilled head):
/// T is the cross entropy, or as divergence t^2 KL(taught || softmax(logits / t)) (Hinton et al.
/// 2015; DeiT's code divides it by the number of classes too). A model of one head learns both with
/// that. Of two heads without a teacher both learn the labels, half and half.
/// returns: `nll` is the cross entropy of the model's answer (the mean of both heads) against the
/// labels alone, without smoothing: of a mixed image against the shares of both of its labels.
LossSums accumulate_images(const Model& model, const nn::ImageRows& images,
                           const ImageTargets& targets, const nn::Run& run);

/// Row by row softmax(logits / temperature). logits: [rows, classes]
Tensor softened(std::span<const float> logits, int64_t classes, double temperature);
/// Row by row 1 for the largest logit (of equal ones the first), 0 for the others.
Tensor hardened(std::span<const float> logits, int64_t classes);

}  // namespace heddle::train
