// What the task image_classification is told.
#pragma once

#include <string>

#include "heddle/base/files/files.h"
#include "heddle/tensor/image_size.h"
#include "heddle/train/config.h"
#include "heddle/vision/augment.h"

namespace heddle::train {

/// Whether a model that nothing is begun from can be trained on images of `edge` x `edge` pixels,
/// as far as its config says. Errors: usage if it asks for others, or is not filled by its patches;
/// data for fields that do not fit together.
void check_new_model(StackConfig stack, int64_t edge);
/// Errors: usage if patches of `edge` x `edge` pixels leave some of an image over; 0 or less: the
/// model has no patches.
void check_patches(int64_t edge, const ImageSize& image);

struct ImageFields : TaskFields {
  int64_t image_edge = 0, batch_size = 128, cache_edge = 0, labelled_in_batch = 0;
  double label_smoothing = 0, val_share = 0.1, label_share = 1, mix_until = 1;
  std::string teaching = "hard";
  double teacher_weight = 0.5, teacher_temperature = 1;
  int64_t teacher_views = 16;
  double teacher_feature_weight = 0;
  std::vector<int64_t> teacher_feature_layers;
  Augmentation augmentation;

  void suit(TrainConfig& config) override;
  void check_fit(const TrainConfig& config, const std::string& source) const override;
  void check_data(const TrainConfig& config, const RunPaths& paths) const override;

  template <class V>
  void fields(V& v) {
    v("image_edge", image_edge,
      "height and width that images are trained at; 0: those of the model that is begun from, else "
      "those of the images, if all are equal squares",
      between(0, 65535));
    v("batch_size", batch_size, "images of a batch", between(1, 1 << 30));
    v("label_smoothing", label_smoothing, "share of each label that all classes get",
      from_below(0, 1));
    augmentation.fields(v);
    v("mix_until", mix_until, "share of the updates after which no batch is mixed", between(0, 1));
    v("val_share", val_share,
      "share of each class that is held out, chosen by the seed, where no images are",
      between(0, 1));
    v("label_share", label_share,
      "share of each class, chosen by the seed, whose labels count; of the others the teacher says "
      "what they show, and without one they are left out",
      {.low = 0, .high = 1, .is_low_open = true});
    v("labelled_in_batch", labelled_in_batch,
      "of a batch's images, those with labels; an epoch is then one of those without; 0: as they "
      "come",
      at_least(0));
    v("teaching", teaching,
      "hard: by the teacher's likeliest class; soft: by its probabilities, the Kullback-Leibler "
      "divergence of an image times teacher_temperature^2 (DeiT's code divides by the classes too)",
      one_of({"hard", "soft"}));
    v("teacher_weight", teacher_weight,
      "share of the loss that is the teacher's; of a model with a distillation token that head's "
      "loss",
      between(0, 1));
    v("teacher_temperature", teacher_temperature,
      "of soft teaching: logits are divided by it before they are made probabilities", above(0));
    v("teacher_views", teacher_views,
      "ways in which each image is augmented, one after the other, with a teacher: what it says of "
      "them is computed once and kept; 0, and where batches are mixed or features imitated: "
      "another "
      "one in each epoch, and nothing is kept",
      between(0, 1 << 20));
    v("teacher_feature_weight", teacher_feature_weight,
      "of imitating the teacher's last states, each of mean 0 and deviation 1, by a linear layer: "
      "mean squared error, added to the loss; the teacher is then asked anew each time",
      at_least(0));
    v("teacher_feature_layers", teacher_feature_layers,
      "hidden states that imitate it, each by a layer of its own, 0 being the embeddings; empty: "
      "the last states",
      at_least(0));
    v("cache_edge", cache_edge,
      "larger images are kept with a shorter edge of so many pixels; 0: as they are", at_least(0));
  }
};

}  // namespace heddle::train
