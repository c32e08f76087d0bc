// Imitating a teacher's features: Hinton et al. 2015 for states in place of answers, as Li et al.
// 2022, "Locality guidance for improving vision Transformers on tiny datasets" (arXiv 2207.10026),
// do with a CNN.
#pragma once

#include <string>
#include <vector>

#include "heddle/models/image_model.h"

namespace heddle::train {

/// A linear layer for each of some hidden states of a model, which makes features of a teacher out
/// of them; trained beside the model and no part of it.
class Imitation {
 public:
  /// size: of the images. layers: numbers of hidden states; empty: the last states, normed.
  /// width: of the features    Errors: usage if the model shows no such hidden state.
  Imitation(nn::Parameters& parameters, const ImageModel& student, const ImageSize& size,
            int64_t width, std::vector<int64_t> layers, double weight);

  /// How the features of an image must lie.
  const ImageSize& grid() const { return grid_; }
  /// Leaves the hidden states that are asked for in `states`, which must live as long.
  nn::Observer observer(std::vector<Tensor>& states) const;

  struct Loss {
    Tensor loss;       ///< for backward()
    double value = 0;  ///< sum over the images
  };
  /// weight * mean over layers, rows and columns of (W state + b - feature)^2, summed over images.
  /// h: the model's last states; features: [images * rows of the grid, width]
  Loss loss(const std::vector<Tensor>& states, const Tensor& h, const Tensor& features) const;

 private:
  struct Layer {
    std::string state;  // as an observer hears it; "": the last ones
    nn::Parameter* weight;
    nn::Parameter* bias;
  };

  ImageSize grid_;
  int64_t tokens_, width_;
  double weight_;
  std::vector<Layer> layers_;
};

/// The states of each image's grid, of mean 0 and deviation 1 a row, at another grid (bicubic).
/// states: [images * (tokens + rows of `from`), width]    returns: [images * rows of `to`, width]
Tensor grid_features(const Tensor& states, int64_t tokens, const ImageSize& from,
                     const ImageSize& to);

}  // namespace heddle::train
