// Scenes of plain shapes.
#include "corpora/placed_shape.h"
#include "corpora/scenes.h"
#include "heddle/base/error.h"

namespace heddle {
namespace {

using drawing::Background;
using drawing::Canvas;
using drawing::Chance;
using drawing::Color;
using drawing::PlacedShape;

// One that stands out; of many draws the one that does most.
Color drawn_color(const Background& back, Chance& chance) {
  Color best = {};
  double most = -1;
  for (int i = 0; i < 12 && most < 180; ++i) {
    const auto choice = chance.one_of(drawing::kPalette.size());
    const Color color = chance.near(drawing::kPalette[choice].color, 20);
    const double contrast = back.contrast(color);
    if (contrast <= most) continue;
    most = contrast;
    best = color;
  }
  return best;
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

int32_t drawn_kind(Chance& chance) {
  return static_cast<int32_t>(chance.count(drawing::kCircle, drawing::kRing));
}

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
  const Background back = drawing::drawn_background(chance);
  drawing::fill(canvas, back, chance);
  const auto edge = static_cast<double>(std::min(o.size.height, o.size.width));
  DrawnScene scene;
  for (int64_t left = chance.count(o.least_objects, o.most_objects); left > 0; --left) {
    const int32_t kind = drawn_kind(chance);
    PlacedShape shape =
        drawing::drawn_shape(kind, edge * chance.between(o.least_size, o.most_size) / 2, chance);
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
  const Background back = drawing::drawn_background(chance);
  drawing::fill(canvas, back, chance);
  const auto label = static_cast<int32_t>(index % shape_classes().size());
  const double height = static_cast<double>(o.size.height),
               width = static_cast<double>(o.size.width), edge = std::min(height, width);
  PlacedShape shape = drawing::drawn_shape(label, edge * chance.between(0.25, 0.42), chance);
  const auto shift = [&] { return chance.between(-0.1, 0.1) * edge; };
  const double right = shift(), down = shift();
  move(shape, width / 2 + right, height / 2 + down);
  paint(canvas, shape, drawn_color(back, chance), o.anti_aliased);
  return {canvas.finish(o.noise, chance), label};
}

}  // namespace heddle
