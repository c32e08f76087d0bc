// Probabilities of classes.
#include "heddle/train/tasks/images/image_judge.h"

#include <algorithm>
#include <cmath>

#include "heddle/base/log_sum_exp.h"
#include "heddle/base/parallel.h"
#include "heddle/infer/image_batch.h"
#include "heddle/train/tasks/losses.h"

namespace heddle::train {
namespace {

ImageAnswer answer_of(std::span<const float> logits, int32_t truth) {
  const auto best = std::ranges::max_element(logits);
  const double log_sum = log_sum_exp(logits);
  return {.rank = rank_of(truth, logits),
          .answer = static_cast<int32_t>(best - logits.begin()),
          .probability = std::exp(*best - log_sum),
          .loss = log_sum - logits[truth]};
}

}  // namespace

std::vector<ImageAnswer> judge_images(const Model& model, const ImageSet& images,
                                      const ImageProcessor& processor, int64_t begin, int64_t end,
                                      const nn::Run& run) {
  std::vector<Image> fits(static_cast<size_t>(end - begin));
  parallel_for(end - begin,
               [&](int64_t i) { fits[i] = processor.fit(images.image(begin + i).rgb()); });
  const ImageBatch batch(fits, processor);
  const NoGrad off;
  const Tensor logits = class_logits(model, batch.rows(), run);
  const std::vector<float> values = logits.to_floats();
  const int64_t classes = logits.size(1);
  std::vector<ImageAnswer> answers;
  for (int64_t i = begin; i < end; ++i) {
    const std::span row(values.data() + (i - begin) * classes, static_cast<size_t>(classes));
    answers.push_back(answer_of(row, images.label(i)));
    answers.back().image = i;
  }
  return answers;
}

ValidationScore score_of(const std::vector<ImageAnswer>& answers) {
  double loss = 0, right = 0, among_five = 0;
  for (const ImageAnswer& a : answers) {
    loss += a.loss;
    right += a.rank == 0;
    among_five += a.rank < 5;
  }
  const auto n = static_cast<double>(answers.size());
  return {.loss = loss / n, .metrics = {{"accuracy", right / n}, {"top5", among_five / n}}};
}

std::vector<ImageAnswer> worst_of(std::vector<ImageAnswer> answers, size_t most) {
  std::erase_if(answers, [](const ImageAnswer& a) { return a.rank == 0; });
  std::ranges::stable_sort(answers, std::greater(), &ImageAnswer::loss);
  answers.resize(std::min(answers.size(), most));
  return answers;
}

}  // namespace heddle::train
