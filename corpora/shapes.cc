// Scenes of plain shapes.
#include <numbers>

#include "corpora/canvas.h"
#include "corpora/scenes.h"
#include "heddle/base/error.h"

namespace heddle {
namespace {

using drawing::Canvas;
using drawing::Chance;
using drawing::Color;
using drawing::Ellipse;
using drawing::Point;
using drawing::Polygon;

enum ShapeKind : int32_t { kCircle, kSquare, kTriangle, kCross, kStar, kRing };

constexpr std::array<Color, 8> kColors = {{{220, 40, 40},
                                           {40, 160, 60},
                                           {40, 80, 210},
                                           {235, 200, 40},
                                           {150, 60, 180},
                                           {30, 180, 190},
                                           {240, 130, 30},
                                           {235, 120, 180}}};
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

// A shape on the canvas: an outline with corners, or a round one.
struct PlacedShape {
  int32_t kind = 0;
  Polygon outline;
  Ellipse round;

  bool is_round() const { return outline.corners.empty(); }
  Box bounds() const { return is_round() ? round.bounds() : outline.bounds(); }
  double inside(double x, double y) const {
    if (!is_round()) return outline.inside(x, y);
    const double outer = round.inside(x, y);
    return kind == kRing ? std::min(outer, -round.inside(x, y, kHole)) : outer;
  }
};

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

struct Background {
  Color from, to;
};

Background fill_background(Canvas& canvas, Chance& chance) {
  const auto grey = static_cast<float>(chance.between(20, 235));
  const Color base = {grey, grey, grey};
  const Background back{chance.near(base, 25), chance.near(base, 25)};
  canvas.fill(back.from, back.to, chance.between(0, 2 * std::numbers::pi));
  return back;
}

double distance(const Color& a, const Color& b) {
  double sum = 0;
  for (size_t c = 0; c < 3; ++c) sum += std::abs(static_cast<double>(a[c] - b[c]));
  return sum;
}

// One that stands out; of many draws the one that does most.
Color drawn_color(const Background& back, Chance& chance) {
  Color best = {};
  double most = -1;
  for (int i = 0; i < 12 && most < 180; ++i) {
    const Color color =
        chance.near(kColors[static_cast<size_t>(chance.count(0, std::ssize(kColors) - 1))], 20);
    const double contrast = std::min(distance(color, back.from), distance(color, back.to));
    if (contrast <= most) continue;
    most = contrast;
    best = color;
  }
  return best;
}

void paint(Canvas& canvas, const PlacedShape& shape, const Color& color, bool anti_aliased) {
  canvas.paint(shape.bounds(), color, [&](double x, double y, Color&) {
    return drawing::coverage(shape.inside(x, y), anti_aliased);
  });
}

bool overlaps(const Box& box, const std::vector<LabelledBox>& others, double most) {
  return std::ranges::any_of(others, [&](const LabelledBox& other) {
    return intersection(box, other.box).area() > most * std::min(box.area(), other.box.area());
  });
}

// Moves the shape to where it has room; false if it finds none.
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

void check_options(const ShapeOptions& o) {
  check(
      std::min(o.size.height, o.size.width) >= 16 && std::max(o.size.height, o.size.width) <= 16384,
      ErrorKind::usage, "shapes: images of {} x {} pixels; edges of 16 to 16384 are needed",
      o.size.width, o.size.height);
  check(o.least_objects >= 1 && o.most_objects >= o.least_objects && o.most_objects <= 1000,
        ErrorKind::usage, "shapes: {} to {} objects; from 1 to 1000 are needed", o.least_objects,
        o.most_objects);
  check(o.least_size > 0 && o.most_size >= o.least_size && o.most_size <= 0.7 &&
            o.most_overlap >= 0 && o.most_overlap <= 1 && o.noise >= 0,
        ErrorKind::usage,
        "shapes: sizes from {} to {}, an overlap of {}, noise of {}; sizes must be above 0 and at "
        "most 0.7, an overlap between 0 and 1",
        o.least_size, o.most_size, o.most_overlap, o.noise);
}

int32_t drawn_kind(Chance& chance) { return static_cast<int32_t>(chance.count(kCircle, kRing)); }

}  // namespace

const std::vector<std::string>& shape_classes() {
  static const std::vector<std::string> names = {"circle", "square", "triangle",
                                                 "cross",  "star",   "ring"};
  return names;
}

DrawnScene draw_shapes(const ShapeOptions& o, uint64_t seed, uint64_t index) {
  check_options(o);
  Chance chance(seed, "scenes/shapes", index);
  Canvas canvas(o.size);
  const Background back = fill_background(canvas, chance);
  const auto edge = static_cast<double>(std::min(o.size.height, o.size.width));
  DrawnScene scene;
  for (int64_t left = chance.count(o.least_objects, o.most_objects); left > 0; --left) {
    const int32_t kind = drawn_kind(chance);
    PlacedShape shape =
        drawn_shape(kind, edge * chance.between(o.least_size, o.most_size) / 2, chance);
    if (!place(shape, o.size, scene.boxes, o.most_overlap, chance)) continue;
    paint(canvas, shape, drawn_color(back, chance), o.anti_aliased);
    scene.boxes.push_back({.box = clipped(shape.bounds(), o.size), .label = kind});
  }
  scene.image = canvas.finish(o.noise, chance);
  return scene;
}

DrawnShape draw_shape(const ShapeOptions& o, uint64_t seed, uint64_t index) {
  check_options(o);
  Chance chance(seed, "scenes/shape", index);
  Canvas canvas(o.size);
  const Background back = fill_background(canvas, chance);
  const auto label = static_cast<int32_t>(index % shape_classes().size());
  const double height = static_cast<double>(o.size.height),
               width = static_cast<double>(o.size.width), edge = std::min(height, width);
  PlacedShape shape = drawn_shape(label, edge * chance.between(0.25, 0.42), chance);
  const auto shift = [&] { return chance.between(-0.1, 0.1) * edge; };
  const double right = shift(), down = shift();
  move(shape, width / 2 + right, height / 2 + down);
  paint(canvas, shape, drawn_color(back, chance), o.anti_aliased);
  return {canvas.finish(o.noise, chance), label};
}

}  // namespace heddle
