// Random changes of images that move the boxes around their objects along.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heddle/vision/augment.h"
#include "heddle/vision/boxes.h"

namespace heddle {

struct BoxedImage {
  Image image;
  std::vector<LabelledBox> boxes;  ///< in its pixels
};

/// What is done to an image with boxes, in this order but for the mosaic, which is its beginning,
/// and copies of other images' objects, which are its end.
struct BoxAugmentation {
  double mosaic = 0;
  double scale_low = 1, scale_high = 1;
  double crop_edges = 1;
  double min_visible = 0.3;
  std::string turns = "none";
  double box_color_jitter = 0;
  int64_t dense_targets = 1;

  template <class V>
  void fields(V& v) {
    v("mosaic", mosaic, "probability that parts of four images share one", between(0, 1));
    v("scale_low", scale_low,
      "least factor by which objects are made smaller or larger; the image shrinks with them",
      between(0.1, 10));
    v("scale_high", scale_high,
      "greatest factor; beyond 1 a part of the image is cut out that gets the image's size",
      between(0.1, 10));
    v("crop_edges", crop_edges,
      "smallest share of an edge that half of the images are cut down to; 1: none",
      between(0.05, 1));
    v("min_visible", min_visible, "objects of which less of the box is left are not asked for",
      between(0, 1));
    v("turns", turns,
      "columns: half of the images mirrored, left to right; both: top to bottom too; all: "
      "turned by 90 degrees as well",
      one_of({"none", "columns", "both", "all"}));
    v("box_color_jitter", box_color_jitter,
      "brightness, contrast and saturation change by a factor of up to 1 +- this", between(0, 100));
    v("dense_targets", dense_targets,
      "images whose objects one image gets, its own among them: copies of the others' stand where "
      "there is room, no more objects in all than queries; 1: its own alone",
      between(1, 16));
  }

  /// Errors: usage, naming `source`, for a scale_low above scale_high.
  void check(const std::string& source) const;
};

/// The image resized to `target` (bilinear), or what the other fields make of that: its own size is
/// then another, of no edge below 16 pixels or the target's. Boxes are clipped; those of which less
/// than min_visible is left, or not a pixel, are dropped. A pure function of its arguments.
BoxedImage augment_boxes(const BoxedImage& one, const BoxAugmentation& how, ImageSize target,
                         const AugmentDraw& draw);

/// The three other images of a mosaic, out of so many; nothing if there is to be none.
std::optional<std::array<int64_t, 3>> draw_mosaic(const BoxAugmentation& how, int64_t images,
                                                  const AugmentDraw& draw);

/// Parts of four images around a point near the middle of one of the target's size, each so large
/// that it fills its quarter; then turned and in other colours as augment_boxes() does. Source:
/// Bochkovskiy et al. 2020, "YOLOv4".
BoxedImage augment_mosaic(std::span<const BoxedImage> four, const BoxAugmentation& how,
                          ImageSize target, const AugmentDraw& draw);

/// Another image whose objects are to be copied, and what it is augmented by.
struct CopiedImage {
  int64_t image = 0;
  AugmentDraw draw;
};
/// dense_targets - 1 of so many images.
std::vector<CopiedImage> draw_copied(const BoxAugmentation& how, int64_t images,
                                     const AugmentDraw& draw);

/// Copies the objects of other images into one, the pixels of their boxes with them, each to any
/// position where it hides no more than a quarter of an object that is there; those for which some
/// tries find none, and those beyond `most` objects in all, are left out. Other objects that a box
/// shows min_visible of come along. One-to-one matching gets more pairs of an image so: Huang et
/// al. 2024, "DEIM", section 3.2 (who blend images); Dwibedi et al. 2017, "Cut, Paste and Learn".
void copy_objects(BoxedImage& one, std::span<const BoxedImage> others, const BoxAugmentation& how,
                  int64_t most, const AugmentDraw& draw);

/// Images with boxes, by their number.
struct BoxedSet {
  int64_t size = 0;
  std::function<BoxedImage(int64_t)> at;
  std::function<ImageSize(ImageSize)> target;  ///< what an image of a size is resized to
};

/// Image draw.sample of a set as a model that finds at most `most` objects is trained on it: all of
/// the above in turn. A pure function of its arguments.
BoxedImage augment_of_set(const BoxedSet& set, const BoxAugmentation& how, int64_t most,
                          const AugmentDraw& draw);

/// One of the eight positions of a square: 1 mirrors left and right, 2 top and bottom, 4 then makes
/// rows of columns; 0 to 7.
BoxedImage turned(BoxedImage one, int turn);

}  // namespace heddle
