// Coloured shapes with captions.
#include <algorithm>
#include <cmath>

#include "corpora/captions/captioned_scenes.h"
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

constexpr double kLeastLength = 9.0 / 64, kMostLength = 20.0 / 64;  // shares of the shorter edge
constexpr double kRepeats = 1.0 / 3, kJitter = 20, kNoise = 6, kLeastContrast = 150;

template <class T>
const T& one_of(const std::vector<T>& values, Chance& chance) {
  return values[chance.one_of(values.size())];
}

std::vector<Sort> sorts_to_draw(bool with_held_out) {
  std::vector<Sort> sorts;
  for (const std::string& color : caption_colors()) {
    for (const std::string& noun : caption_shapes()) {
      const Sort sort{color, noun};
      if (with_held_out || !is_held_out(sort)) sorts.push_back(sort);
    }
  }
  return sorts;
}

int32_t kind_of(const std::string& noun) {
  return static_cast<int32_t>(std::ranges::find(shape_classes(), noun) - shape_classes().begin());
}

Color color_of(const std::string& name) {
  return std::ranges::find(drawing::kPalette, name, &drawing::NamedColor::name)->color;
}

// Its box has the length on its longer side.
PlacedShape shape_of(const Sort& sort, double length, Chance& chance) {
  PlacedShape shape = drawing::drawn_shape(kind_of(sort.noun), 1, chance);
  const Box box = shape.bounds();
  scale(shape, length / std::max(box.width(), box.height()));
  return shape;
}

Box in_steps(const Box& box) {
  const auto step = [](double v) { return std::round(v / kBoxStep) * kBoxStep; };
  return {step(box.x0), step(box.y0), step(box.x1), step(box.y1)};
}

// What is to be painted.
struct Placement {
  std::vector<PlacedShape> shapes;
  std::vector<LabelledBox> boxes;
  std::vector<Sort> sorts;
};

Placement draw_placement(const CaptionedSceneOptions& o, Chance& chance) {
  static const std::vector<Sort> seen = sorts_to_draw(false), all = sorts_to_draw(true);
  const auto edge = static_cast<double>(std::min(o.size.height, o.size.width));
  Placement placement;
  const int64_t count = chance.count(kLeastCaptionedShapes, o.most_objects);
  for (int64_t i = 0; i < count; ++i) {
    const bool is_repeat = chance.happens(kRepeats) && !placement.sorts.empty();
    const Sort sort = is_repeat                 ? one_of(placement.sorts, chance)
                      : !o.captions.is_unseen   ? one_of(seen, chance)
                      : placement.sorts.empty() ? one_of(held_out_sorts(), chance)
                                                : one_of(all, chance);
    PlacedShape shape = shape_of(sort, edge * chance.between(kLeastLength, kMostLength), chance);
    if (!place(shape, o.size, placement.boxes, 0, chance)) continue;
    placement.boxes.push_back({.box = shape.bounds()});
    placement.shapes.push_back(std::move(shape));
    placement.sorts.push_back(sort);
  }
  return placement;
}

// Enough objects, and two sorts to relate. Of some hundred draws one is not so.
Placement usable_placement(const CaptionedSceneOptions& o, Chance& chance) {
  for (;;) {
    Placement placement = draw_placement(o, chance);
    const std::vector<Sort>& sorts = placement.sorts;
    if (std::ssize(sorts) < kLeastCaptionedShapes) continue;
    if (std::ranges::any_of(sorts, [&](const Sort& s) { return s != sorts.front(); })) {
      return placement;
    }
  }
}

// Of some draws the one from which all colours stand out.
Background drawn_behind(const std::vector<Color>& colors, Chance& chance) {
  Background best = drawing::drawn_background(chance);
  const auto least = [&](const Background& back) {
    double contrast = 1e9;
    for (const Color& color : colors) contrast = std::min(contrast, back.contrast(color));
    return contrast;
  };
  for (int i = 0; i < 12 && least(best) < kLeastContrast; ++i) {
    const Background back = drawing::drawn_background(chance);
    if (least(back) > least(best)) best = back;
  }
  return best;
}

void check_options(const CaptionedSceneOptions& o) {
  const auto [height, width] = o.size;
  check(std::min(height, width) >= 32 && std::max(height, width) <= 4096, ErrorKind::usage,
        "captioned shapes: images of {} x {} pixels; edges of 32 to 4096 are needed", width,
        height);
  check(o.most_objects >= kLeastCaptionedShapes && o.most_objects <= 8, ErrorKind::usage,
        "captioned shapes: {} objects at most; from {} to 8 are needed", o.most_objects,
        kLeastCaptionedShapes);
}

}  // namespace

CaptionedScene draw_captioned_shapes(const CaptionedSceneOptions& o, uint64_t seed,
                                     uint64_t index) {
  check_options(o);
  Chance chance(seed, "scenes/captioned shapes", index);
  const Placement placement = usable_placement(o, chance);
  std::vector<Color> colors;
  for (const Sort& sort : placement.sorts) {
    colors.push_back(chance.near(color_of(sort.color), kJitter));
  }
  Canvas canvas(o.size);
  drawing::fill(canvas, drawn_behind(colors, chance), chance);
  CaptionedScene result{.scene = {.size = o.size}};
  for (size_t i = 0; i < colors.size(); ++i) {
    paint(canvas, placement.shapes[i], colors[i], true);
    result.scene.objects.push_back(
        {.sort = placement.sorts[i], .box = in_steps(placement.boxes[i].box)});
  }
  result.image = canvas.finish(kNoise, chance);
  result.captions = true_captions(result.scene, o.captions, chance);
  return result;
}

}  // namespace heddle
