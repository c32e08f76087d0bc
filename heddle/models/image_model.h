// What commands and tasks ask of models that read images.
#pragma once

#include "heddle/models/family.h"
#include "heddle/nn/images/grid_positions.h"
#include "heddle/nn/images/image_rows.h"

namespace heddle {

using nn::ImageRows;

/// What stands of an image's model beside its layers.
struct ImageFacts {
  int64_t channels = 3;
  ImageSize image_size;  ///< that it was made for: what images are resized to
  int64_t layers = 0, width = 0;
  int64_t tokens = 0;       ///< rows of an image's states before its grid: class tokens
  bool pools_grid = false;  ///< of models that may have such tokens: the grid's mean is classified
  /// Whether what is classified is the state of a token.
  bool reads_token() const { return tokens > 0 && !pools_grid; }
};

/// Which rows of segments stand behind their first `tokens`.
std::vector<int32_t> rows_behind(const Segments& rows, int64_t tokens);

class ImageModel : public Model {
 public:
  static constexpr const char* kAbility = "reads images";

  explicit ImageModel(const ImageFacts& facts) : Model(facts.layers, facts.width), facts_(facts) {}
  ImageModel(const ImageModel&) = delete;  // its heads point to it
  ImageModel& operator=(const ImageModel&) = delete;

  const ImageFacts& facts() const { return facts_; }
  /// How the rest of an image's states lies over it: patches, or pixels of the last stage. Errors:
  /// data if it takes no images of that size.
  virtual ImageSize grid(const ImageSize& image) const = 0;
  /// The states of each image: facts().tokens, then those of its grid, line by line. Heads, and
  /// attention, see these segments, not those of the pixels.
  virtual Segments tokens(const ImageRows& images) const;
  /// Of states that lie as tokens() says those of the grids: [cells of all images, width].
  Tensor grid_states(const Tensor& h, const ImageRows& images) const;

  /// Learned positions of the cells of its own images' grid; null if it has none.
  virtual const nn::GridPositions* grid_positions() const { return nullptr; }

  /// The last layer's states: [rows of tokens(images), width]. Errors: shape if the images are no
  /// such rows; data if it takes none of a size.
  virtual Tensor hidden(const ImageRows& images, const Run& run) const = 0;
  Tensor hidden(const ModelInput& input, const Run& run) const final {
    return hidden(input.as<ImageRows>(), run);
  }

 protected:
  /// The grids of images.
  std::vector<ImageSize> grids(const ImageRows& images) const;
  /// The state of one of the tokens before the grid: [images, width].
  Heads::OfInput token(int64_t index = 0) const;
  /// The mean of the states of its grid: [images, width].
  Heads::OfInput grid_mean() const;

 private:
  ImageFacts facts_;
};

}  // namespace heddle
