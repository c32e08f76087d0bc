// Images that heddle draws, with boxes around what they show: to try detectors and classifiers on
// without any data, and to train on before real images.
#pragma once

#include <string>
#include <vector>

#include "heddle/vision/boxes.h"
#include "heddle/vision/image.h"

namespace heddle {

/// An image and its objects. A pure function of options, seed and index.
struct DrawnScene {
  Image image;
  /// Around the whole outline, as far as it lies in the image.
  std::vector<LabelledBox> boxes;
};

struct ShapeOptions {
  ImageSize size = {128, 128};
  int64_t least_objects = 1, most_objects = 8;
  double least_size = 0.12, most_size = 0.36;  ///< shares of the shorter edge
  double most_overlap = 0.1;                   ///< share of the smaller box that another may cover
  double noise = 6;                            ///< standard deviation, in levels of 255
  bool anti_aliased = true;
};

/// circle, square, triangle, cross, star, ring.
const std::vector<std::string>& shape_classes();

/// Shapes of these classes, each in one of eight colours that differs from the background, turned
/// by up to 25 degrees, up to a quarter wider or higher. Where no place is left there are fewer
/// than were drawn, at least one. Errors: usage for sizes or counts that are none, or images below
/// 16 pixels.
DrawnScene draw_shapes(const ShapeOptions& options, uint64_t seed, uint64_t index);

/// One shape about the middle, that fills half or more of the image; its class is index modulo the
/// number of classes.
struct DrawnShape {
  Image image;
  int32_t label = 0;
};
DrawnShape draw_shape(const ShapeOptions& options, uint64_t seed, uint64_t index);

/// RBC, WBC, Platelets: red and white blood cells as ../shared/data/bccd names them.
const std::vector<std::string>& cell_classes();

/// A stained smear of blood under a microscope: pink discs, paler within, which overlap and lie
/// over the border; mostly one purple cell with a nucleus of lobes; few purple dots. Sizes and
/// counts are about those of ../shared/data/bccd. Errors: usage for images below 64 pixels.
DrawnScene draw_cells(ImageSize size, uint64_t seed, uint64_t index);

}  // namespace heddle
