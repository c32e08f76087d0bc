// What a model makes of held-out images.
#pragma once

#include <vector>

#include "heddle/data/images.h"
#include "heddle/models/image_model.h"
#include "heddle/train/scores.h"
#include "heddle/vision/image_processor.h"

namespace heddle::train {

/// Of one image.
struct ImageAnswer {
  int64_t image = 0;       ///< in the set
  int64_t rank = 0;        ///< of the true class, see rank_of()
  int32_t answer = 0;      ///< the likeliest class
  double probability = 0;  ///< of that
  double loss = 0;         ///< -log p of the true class, nats
};

/// Answers for the images begin to end - 1 of a set, prepared as the model is used.
std::vector<ImageAnswer> judge_images(const Model& model, const ImageSet& images,
                                      const ImageProcessor& processor, int64_t begin, int64_t end,
                                      const nn::Run& run);

/// Loss, accuracy and top5 over answers.
ValidationScore score_of(const std::vector<ImageAnswer>& answers);

/// At most `most` wrong answers, of the largest losses first; of equal ones the first image's.
std::vector<ImageAnswer> worst_of(std::vector<ImageAnswer> answers, size_t most);

}  // namespace heddle::train
