// Plain shapes on their way to a canvas, and the palette that they are painted in.
#pragma once

#include <array>
#include <vector>

#include "corpora/canvas.h"

namespace heddle::drawing {

enum ShapeKind : int32_t { kCircle, kSquare, kTriangle, kCross, kStar, kRing };

struct NamedColor {
  const char* name;
  Color color;
};
inline constexpr std::array<NamedColor, 8> kPalette = {{{"red", {220, 40, 40}},
                                                        {"green", {40, 160, 60}},
                                                        {"blue", {40, 80, 210}},
                                                        {"yellow", {235, 200, 40}},
                                                        {"purple", {150, 60, 180}},
                                                        {"cyan", {30, 180, 190}},
                                                        {"orange", {240, 130, 30}},
                                                        {"pink", {235, 120, 180}}}};

/// A shape on the canvas: an outline with corners, or a round one.
struct PlacedShape {
  int32_t kind = 0;
  Polygon outline;
  Ellipse round;

  bool is_round() const { return outline.corners.empty(); }
  Box bounds() const { return is_round() ? round.bounds() : outline.bounds(); }
  /// How far a point lies inside the edge, in pixels.
  double inside(double x, double y) const;
};

/// Within a circle of the radius about (0, 0) before it is turned by up to 25 degrees and made up
/// to a quarter wider or higher.
PlacedShape drawn_shape(int32_t kind, double radius, Chance& chance);
void move(PlacedShape& shape, double x, double y);
/// About (0, 0).
void scale(PlacedShape& shape, double factor);
/// Moves the shape to where it has room: others cover at most this share of the smaller box, and
/// all of it lies in the image. False if it finds none.
bool place(PlacedShape& shape, ImageSize size, const std::vector<LabelledBox>& others,
           double most_overlap, Chance& chance);
void paint(Canvas& canvas, const PlacedShape& shape, const Color& color, bool anti_aliased);

/// The two ends of a slope.
struct Background {
  Color from, to;

  /// Sum over the channels of what lies between a colour and the nearer end.
  double contrast(const Color& color) const;
};
/// Greys.
Background drawn_background(Chance& chance);
/// The slope, in any direction.
void fill(Canvas& canvas, const Background& back, Chance& chance);

}  // namespace heddle::drawing
