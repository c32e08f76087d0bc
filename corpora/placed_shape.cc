// Outlines of plain shapes: drawn, moved, placed, painted.
#include "corpora/placed_shape.h"

#include <numbers>

namespace heddle::drawing {
namespace {

constexpr double kHole = 0.55;  // of a ring's radius

// Corners at these radii, evenly around, from the top on.
std::vector<Point> around(int count, const std::vector<double>& radii, double first = 0) {
  std::vector<Point> points;
  for (int i = 0; i < count; ++i) {
    const double angle = first + 2 * std::numbers::pi * i / count - std::numbers::pi / 2,
                 radius = radii[static_cast<size_t>(i) % radii.size()];
    points.push_back({radius * std::cos(angle), radius * std::sin(angle)});
  }
  return points;
}

// Within a circle of radius 1.
std::vector<Point> unit_corners(int32_t kind) {
  switch (kind) {
    case kSquare: return around(4, {1}, std::numbers::pi / 4);
    case kTriangle: return around(3, {1});
    case kStar: return around(10, {1, 0.42});
    case kCross: {
      constexpr double a = 0.32, b = 0.95;
      return {{-a, -b}, {a, -b}, {a, -a}, {b, -a}, {b, a},   {a, a},
              {a, b},   {-a, b}, {-a, a}, {-b, a}, {-b, -a}, {-a, -a}};
    }
    default: return {};  // round
  }
}

bool overlaps(const Box& box, const std::vector<LabelledBox>& others, double most) {
  return std::ranges::any_of(others, [&](const LabelledBox& other) {
    return intersection(box, other.box).area() > most * std::min(box.area(), other.box.area());
  });
}

double distance(const Color& a, const Color& b) {
  double sum = 0;
  for (size_t c = 0; c < 3; ++c) sum += std::abs(static_cast<double>(a[c] - b[c]));
  return sum;
}

}  // namespace

double PlacedShape::inside(double x, double y) const {
  if (!is_round()) return outline.inside(x, y);
  const double outer = round.inside(x, y);
  return kind == kRing ? std::min(outer, -round.inside(x, y, kHole)) : outer;
}

PlacedShape drawn_shape(int32_t kind, double radius, Chance& chance) {
  const double most_turn = 25 * std::numbers::pi / 180,
               turn = chance.between(-most_turn, most_turn),
               wider = std::exp2(chance.between(-0.16, 0.16)), width = radius * wider,
               height = radius / wider, cosine = std::cos(turn), sine = std::sin(turn);
  PlacedShape shape{
      kind,
      {},
      {.xx = width * cosine, .xy = -height * sine, .yx = width * sine, .yy = height * cosine}};
  const Ellipse& m = shape.round;
  for (const Point& p : unit_corners(kind)) {
    shape.outline.corners.push_back({m.xx * p.x + m.xy * p.y, m.yx * p.x + m.yy * p.y});
  }
  return shape;
}

void move(PlacedShape& shape, double x, double y) {
  for (Point& p : shape.outline.corners) p = {p.x + x, p.y + y};
  shape.round.middle = {shape.round.middle.x + x, shape.round.middle.y + y};
}

void scale(PlacedShape& shape, double factor) {
  for (Point& p : shape.outline.corners) p = {factor * p.x, factor * p.y};
  for (double* v : {&shape.round.xx, &shape.round.xy, &shape.round.yx, &shape.round.yy}) {
    *v *= factor;
  }
}

bool place(PlacedShape& shape, ImageSize size, const std::vector<LabelledBox>& others,
           double most_overlap, Chance& chance) {
  const Box box = shape.bounds();
  const double right = static_cast<double>(size.width) - box.width(),
               down = static_cast<double>(size.height) - box.height();
  if (right < 0 || down < 0) return false;
  for (int i = 0; i < 40; ++i) {
    const double x = chance.between(0, right) - box.x0, y = chance.between(0, down) - box.y0;
    if (overlaps(moved(box, x, y), others, most_overlap)) continue;
    move(shape, x, y);
    return true;
  }
  return false;
}

void paint(Canvas& canvas, const PlacedShape& shape, const Color& color, bool anti_aliased) {
  canvas.paint(shape.bounds(), color, [&](double x, double y, Color&) {
    return coverage(shape.inside(x, y), anti_aliased);
  });
}

double Background::contrast(const Color& color) const {
  return std::min(distance(color, from), distance(color, to));
}

Background drawn_background(Chance& chance) {
  const auto grey = static_cast<float>(chance.between(20, 235));
  const Color base = {grey, grey, grey};
  return {chance.near(base, 25), chance.near(base, 25)};
}

void fill(Canvas& canvas, const Background& back, Chance& chance) {
  canvas.fill(back.from, back.to, chance.between(0, 2 * std::numbers::pi));
}

}  // namespace heddle::drawing
