// Rows of grids: those of a student through linear layers, those of a teacher as targets.
#include "heddle/train/tasks/images/image_imitation.h"

#include <cmath>
#include <utility>

#include "heddle/base/parallel.h"
#include "heddle/nn/images/grid_positions.h"
#include "heddle/ops/elementwise.h"
#include "heddle/ops/embedding.h"
#include "heddle/ops/loss.h"
#include "heddle/ops/matmul.h"

namespace heddle::train {
namespace {

void standardise(std::span<float> row) {
  double sum = 0, squares = 0;
  for (const float x : row) sum += x, squares += double{x} * x;
  const auto n = static_cast<double>(row.size());
  const double mean = sum / n, deviation = std::sqrt(squares / n - mean * mean + 1e-6);
  for (float& x : row) x = static_cast<float>((x - mean) / deviation);
}

}  // namespace

Imitation::Imitation(nn::Parameters& parameters, const ImageModel& student, const ImageSize& size,
                     int64_t width, std::vector<int64_t> layers, double weight)
    : grid_(student.grid(size)), tokens_(student.facts().tokens), width_(width), weight_(weight) {
  const bool is_last = layers.empty();
  if (is_last) layers.push_back(student.layers());
  for (const int64_t i : layers) {
    check(i <= student.layers(), ErrorKind::usage,
          "`teacher_feature_layers`: there is no hidden state {}; the last one is {}", i,
          student.layers());
    const nn::Scope s = nn::Scope(parameters) / "imitation" / i;
    const nn::Init init = nn::Init::normal(1 / std::sqrt(static_cast<double>(student.width())));
    layers_.push_back({is_last ? "" : fmt::format("hidden_states.{}", i),
                       &(s / "weight").parameter({width, student.width()}, init).beside_model(),
                       &(s / "bias").parameter({width}, nn::Init::zeros()).beside_model()});
  }
}

nn::Observer Imitation::observer(std::vector<Tensor>& states) const {
  nn::Observer observer;
  if (layers_[0].state.empty()) return observer;
  states.resize(layers_.size());
  observer.hidden = [this, &states](const std::string& name, const Tensor& x) {
    for (size_t i = 0; i < layers_.size(); ++i) {
      if (layers_[i].state == name) states[i] = x;
    }
  };
  return observer;
}

Imitation::Loss Imitation::loss(const std::vector<Tensor>& states, const Tensor& h,
                                const Tensor& features) const {
  const int64_t each = grid_.height * grid_.width, images = features.size(0) / each;
  const std::vector<int32_t> rows = rows_behind(Segments::uniform(images, tokens_ + each), tokens_);
  const double scale = weight_ / static_cast<double>(std::ssize(layers_) * each * width_);
  Loss sum;
  for (size_t i = 0; i < layers_.size(); ++i) {
    const Tensor& state = layers_[i].state.empty() ? h : states.at(i);
    const bool fits = state.defined() && state.size(0) == images * (tokens_ + each) &&
                      state.size(1) == layers_[i].weight->shape()[1];
    check(fits, ErrorKind::usage,
          "`teacher_feature_layers`: {} of this model is not of the size of its last states; name "
          "others",
          layers_[i].state);
    const Tensor made = linear(gather_rows(state, rows), layers_[i].weight->in(state.dtype()),
                               layers_[i].bias->in(DType::f32));
    const CrossEntropy error = squared_error(made, features, static_cast<float>(scale));
    sum.loss = sum.loss.defined() ? add(sum.loss, error.loss) : error.loss;
    sum.value += scale * error.total;
  }
  return sum;
}

Tensor grid_features(const Tensor& states, int64_t tokens, const ImageSize& from,
                     const ImageSize& to) {
  const int64_t width = states.size(1), before = from.height * from.width,
                after = to.height * to.width, images = states.size(0) / (tokens + before);
  std::vector<float> values = states.to_floats();
  Tensor result = Tensor::zeros({images * after, width}, DType::f32);
  const Tensor shares = from == to ? Tensor() : nn::bicubic_matrix(from, to);
  parallel_for(images, [&](int64_t i) {
    float* const first = values.data() + (i * (tokens + before) + tokens) * width;
    for (int64_t r = 0; r < before; ++r) {
      standardise({first + r * width, static_cast<size_t>(width)});
    }
    float* const out = result.data<float>() + i * after * width;
    for (int64_t r = 0; r < after; ++r) {
      for (int64_t k = from == to ? r : 0; k < (from == to ? r + 1 : before); ++k) {
        const float share = from == to ? 1 : shares.data<float>()[r * before + k];
        for (int64_t c = 0; c < width; ++c) out[r * width + c] += share * first[k * width + c];
      }
    }
  });
  return result;
}

}  // namespace heddle::train
