// Boxes around the objects of an image.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "heddle/tensor/image_size.h"

namespace heddle {

/// A rectangle in pixels, from the upper left corner (x0, y0) to the lower right one (x1, y1),
/// which are points between pixels: all of an image is (0, 0) to (width, height).
struct Box {
  double x0 = 0, y0 = 0, x1 = 0, y1 = 0;

  double width() const { return x1 - x0; }
  double height() const { return y1 - y0; }
  double center_x() const { return (x0 + x1) / 2; }
  double center_y() const { return (y0 + y1) / 2; }
  /// 0 of a box whose corners are in the wrong order.
  double area() const { return std::max(0.0, width()) * std::max(0.0, height()); }
  bool operator==(const Box&) const = default;

  static Box of_center(double x, double y, double width, double height) {
    return {x - width / 2, y - height / 2, x + width / 2, y + height / 2};
  }
  /// x, y of the upper left corner, width and height, as COCO has them.
  static Box of_corner(double x, double y, double width, double height) {
    return {x, y, x + width, y + height};
  }
};

/// An object of an image.
struct LabelledBox {
  Box box;
  int32_t label = 0;      ///< of the set's classes
  bool is_crowd = false;  ///< several objects that nobody counted: not trained on, see average
                          ///< precision
  /// Of the object's outline, as its file has it; none: as large as the box.
  std::optional<double> area = {};
  bool operator==(const LabelledBox&) const = default;
};

/// An object that a detector found.
struct ScoredBox {
  Box box;
  int32_t label = 0;
  double score = 0;  ///< the higher the surer
  bool operator==(const ScoredBox&) const = default;
};

inline Box scaled(const Box& box, double x, double y) {
  return {box.x0 * x, box.y0 * y, box.x1 * x, box.y1 * y};
}
/// The box in an image of the size `from`, once that is resized to `to`.
inline Box resized(const Box& box, ImageSize from, ImageSize to) {
  return scaled(box, static_cast<double>(to.width) / static_cast<double>(from.width),
                static_cast<double>(to.height) / static_cast<double>(from.height));
}
inline Box moved(const Box& box, double x, double y) {
  return {box.x0 + x, box.y0 + y, box.x1 + x, box.y1 + y};
}
/// The part that both cover; of area 0 where there is none.
inline Box intersection(const Box& a, const Box& b) {
  return {std::max(a.x0, b.x0), std::max(a.y0, b.y0), std::min(a.x1, b.x1), std::min(a.y1, b.y1)};
}
inline Box clipped(const Box& box, ImageSize image) {
  return intersection(box,
                      {0, 0, static_cast<double>(image.width), static_cast<double>(image.height)});
}
/// The smallest box that holds both.
inline Box enclosing(const Box& a, const Box& b) {
  return {std::min(a.x0, b.x0), std::min(a.y0, b.y0), std::max(a.x1, b.x1), std::max(a.y1, b.y1)};
}

/// Intersection over union: 1 of equal boxes, 0 of those that share nothing, or have no area.
inline double iou(const Box& a, const Box& b) {
  const double shared = intersection(a, b).area(), all = a.area() + b.area() - shared;
  return all > 0 ? shared / all : 0;
}

/// IoU less the share of the enclosing box that neither covers: from -1 (far apart) to 1 (equal).
/// Source: Rezatofighi et al. 2019, "Generalized Intersection over Union".
inline double generalized_iou(const Box& a, const Box& b) {
  const double shared = intersection(a, b).area(), all = a.area() + b.area() - shared,
               hull = enclosing(a, b).area();
  if (hull <= 0) return 0;
  return (all > 0 ? shared / all : 0) - (hull - all) / hull;
}

}  // namespace heddle
