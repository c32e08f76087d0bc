// Images of random pixels for tests of models that read images, and what training makes of them.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "heddle/autograd/tape.h"
#include "heddle/base/rng.h"
#include "heddle/models/image_model.h"
#include "heddle/models/registry.h"
#include "heddle/ops/loss.h"

namespace heddle {

// Images of these sizes, numbered; a number and a size always have the same pixels.
struct NumberedImages {
  std::vector<ImageSize> sizes;
  std::vector<uint32_t> samples;
  std::vector<float> x;
  Segments segments;

  explicit NumberedImages(const std::vector<std::pair<uint32_t, ImageSize>>& images) {
    for (const auto& [sample, size] : images) {
      sizes.push_back(size), samples.push_back(sample);
      RngStream random(make_key(1, 2, sample));
      for (int64_t i = 0; i < size.height * size.width * 3; ++i) x.push_back(random.uniform());
    }
    segments = nn::image_segments(sizes);
  }
  nn::ImageRows rows() const {
    return {.x = Tensor::from(x, {segments.rows(), 3}),
            .segments = &segments,
            .sizes = &sizes,
            .samples = &samples};
  }
};

// Gradients of all parameters of a new classifier of three classes in a step of training.
inline std::vector<std::vector<float>> training_gradients(const Json& config,
                                                          const NumberedImages& images,
                                                          bool recompute) {
  nn::Parameters parameters(1);
  const auto model = make_model(nn::Scope(parameters), config);
  const nn::ImageRows rows = images.rows();
  const nn::Run run{.dropout = {.training = true, .seed = 1}, .recompute = recompute};
  const Tensor h = model->hidden(rows, run);
  std::vector<int32_t> labels;
  for (size_t i = 0; i < images.sizes.size(); ++i) labels.push_back(static_cast<int32_t>(i % 3));
  backward(cross_entropy(model->heads().sequence_classes(h, rows, run), labels, {}).loss);
  std::vector<std::vector<float>> all;
  for (auto& p : parameters.all()) all.push_back(p->grad().to_floats());
  return all;
}

}  // namespace heddle
