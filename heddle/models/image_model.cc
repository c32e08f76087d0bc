// Which rows of states are of which image.
#include "heddle/models/image_model.h"

#include "heddle/ops/embedding.h"
#include "heddle/ops/reduce.h"

namespace heddle {

std::vector<ImageSize> ImageModel::grids(const ImageRows& images) const {
  std::vector<ImageSize> grids;
  grids.reserve(images.sizes->size());
  for (const ImageSize& size : *images.sizes) grids.push_back(grid(size));
  return grids;
}

Segments ImageModel::tokens(const ImageRows& images) const {
  std::vector<int64_t> lengths;
  for (const ImageSize& g : grids(images)) lengths.push_back(facts_.tokens + g.height * g.width);
  return Segments::from_lengths(lengths);
}

std::vector<int32_t> rows_behind(const Segments& rows, int64_t tokens) {
  std::vector<int32_t> chosen;
  chosen.reserve(static_cast<size_t>(rows.rows()));
  for (int64_t i = 0; i < rows.count(); ++i) {
    for (int64_t r = rows.begin(i) + tokens; r < rows.end(i); ++r) {
      chosen.push_back(static_cast<int32_t>(r));
    }
  }
  return chosen;
}

Tensor ImageModel::grid_states(const Tensor& h, const ImageRows& images) const {
  return facts_.tokens == 0 ? h : gather_rows(h, rows_behind(tokens(images), facts_.tokens));
}

Heads::OfInput ImageModel::grid_mean() const {
  return [this](const Tensor& h, const ModelInput& input, const Run&) {
    const auto& images = input.as<ImageRows>();
    return segment_mean(grid_states(h, images), nn::image_segments(grids(images)));
  };
}

Heads::OfInput ImageModel::token(int64_t index) const {
  return [this, index](const Tensor& h, const ModelInput& input, const Run&) {
    const Segments rows = tokens(input.as<ImageRows>());
    std::vector<int32_t> chosen;
    for (int64_t i = 0; i < rows.count(); ++i) {
      chosen.push_back(static_cast<int32_t>(rows.begin(i) + index));
    }
    return gather_rows(h, chosen);
  };
}

}  // namespace heddle
