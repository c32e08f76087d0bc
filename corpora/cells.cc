// Scenes of blood cells. Lengths are shares of the image's height, by the boxes of BCCD.
#include <numbers>

#include "corpora/canvas.h"
#include "corpora/scenes.h"
#include "heddle/base/error.h"

namespace heddle {
namespace {

using drawing::Blob;
using drawing::Canvas;
using drawing::Chance;
using drawing::Color;

enum CellKind : int32_t { kRed, kWhite, kPlatelet };

// What an image's stain and light have in common.
struct Stain {
  Color back, red, pale, cytoplasm, nucleus, platelet;
};

Stain drawn_stain(Chance& chance) {
  const auto light = static_cast<float>(chance.between(-18, 12));
  const auto lit = [&](Color color, double levels) {
    for (float& v : color) v += light;
    return chance.near(color, levels);
  };
  const Color red = lit({205, 150, 145}, 18);
  Color pale = red;
  for (float& v : pale) v += static_cast<float>(chance.between(15, 35));
  return {.back = lit({226, 214, 204}, 14),
          .red = red,
          .pale = pale,
          .cytoplasm = lit({190, 160, 195}, 16),
          .nucleus = lit({118, 68, 150}, 18),
          .platelet = lit({140, 95, 160}, 16)};
}

Blob drawn_blob(double x, double y, double radius, double bumpiness, Chance& chance) {
  Blob blob{.middle = {x, y}, .radius = radius};
  for (size_t i = 0; i < blob.cosines.size(); ++i) {
    const double bump = chance.between(-1, 1) * bumpiness / static_cast<double>(i + 1),
                 turn = chance.between(0, 2 * std::numbers::pi);
    blob.cosines[i] = bump * std::cos(turn);
    blob.sines[i] = bump * std::sin(turn);
  }
  return blob;
}

// A cell on its way to the canvas.
struct Cell {
  int32_t kind;
  Blob outline;
  Box whole, seen;
};

// How the cells of a kind lie: shares of the height for radii; how much of a smaller box others may
// cover, and how much of a cell must be seen.
struct CellPlan {
  int32_t kind;
  double least_radius, most_radius, bumpiness, most_overlap, least_seen;
};
constexpr CellPlan kReds{kRed, 0.095, 0.14, 0.05, 0.3, 0.3},
    kWhites{kWhite, 0.15, 0.28, 0.07, 0.1, 0.5},
    kPlatelets{kPlatelet, 0.03, 0.055, 0.12, 0.05, 0.9};

class Smear {
 public:
  Smear(ImageSize size, Chance& chance)
      : size_(size),
        width_(static_cast<double>(size.width)),
        height_(static_cast<double>(size.height)),
        chance_(chance) {}

  void add(const CellPlan& plan, int64_t count) {
    for (; count > 0; --count) try_to_add(plan);
  }
  const std::vector<Cell>& cells() const { return cells_; }

 private:
  void try_to_add(const CellPlan& plan) {
    for (int i = 0; i < 30; ++i) {
      const double radius = height_ * chance_.between(plan.least_radius, plan.most_radius),
                   x = chance_.between(-radius / 2, width_ + radius / 2),
                   y = chance_.between(-radius / 2, height_ + radius / 2);
      Cell cell{plan.kind, drawn_blob(x, y, radius, plan.bumpiness, chance_), {}, {}};
      cell.whole = cell.outline.bounds();
      cell.seen = clipped(cell.whole, size_);
      if (cell.seen.area() < plan.least_seen * cell.whole.area() || is_covered(cell, plan))
        continue;
      cells_.push_back(cell);
      return;
    }
  }
  bool is_covered(const Cell& cell, const CellPlan& plan) const {
    return std::ranges::any_of(cells_, [&](const Cell& other) {
      // Beside large cells there is less room than beside others.
      const double most = other.kind == kWhite ? 0.15 : plan.most_overlap;
      return intersection(cell.seen, other.seen).area() >
             most * std::min(cell.seen.area(), other.seen.area());
    });
  }

  ImageSize size_;
  double width_, height_;
  Chance& chance_;
  std::vector<Cell> cells_;
};

void paint_blob(Canvas& canvas, const Blob& blob, const Color& color, double opacity) {
  canvas.paint(blob.bounds(), color, [&](double x, double y, Color&) {
    return opacity * drawing::coverage(blob.inside(x, y), true);
  });
}

// Paler within, darker at the rim.
void paint_red(Canvas& canvas, const Cell& cell, const Stain& stain, Chance& chance) {
  const Color red = chance.near(stain.red, 8), pale = chance.near(stain.pale, 8);
  const double opacity = chance.between(0.75, 0.95), hollow = chance.between(0.2, 0.6);
  canvas.paint(cell.whole, red, [&](double x, double y, Color& used) {
    const double inside = cell.outline.inside(x, y);
    const double deep = std::clamp(inside / cell.outline.radius / hollow - 0.5, 0.0, 1.0);
    for (size_t c = 0; c < 3; ++c) used[c] += static_cast<float>(deep) * (pale[c] - red[c]);
    return opacity * drawing::coverage(inside, true);
  });
}

// A nucleus of one to four lobes in paler cytoplasm.
void paint_white(Canvas& canvas, const Cell& cell, const Stain& stain, Chance& chance) {
  paint_blob(canvas, cell.outline, stain.cytoplasm, chance.between(0.5, 0.95));
  const double radius = cell.outline.radius;
  const int64_t lobes = chance.count(1, 4);
  const double first = chance.between(0, 2 * std::numbers::pi),
               size = lobes == 1 ? chance.between(0.65, 0.9) : chance.between(0.4, 0.5);
  for (int64_t i = 0; i < lobes; ++i) {
    const double angle = first + 1.7 * static_cast<double>(i),
                 away = lobes == 1 ? 0.05 : chance.between(0.3, 0.45);
    const Blob lobe = drawn_blob(cell.outline.middle.x + away * radius * std::cos(angle),
                                 cell.outline.middle.y + away * radius * std::sin(angle),
                                 size * radius, 0.1, chance);
    paint_blob(canvas, lobe, chance.near(stain.nucleus, 8), 0.95);
  }
}

void paint(Canvas& canvas, const Cell& cell, const Stain& stain, Chance& chance) {
  switch (cell.kind) {
    case kRed: return paint_red(canvas, cell, stain, chance);
    case kWhite: return paint_white(canvas, cell, stain, chance);
    default: paint_blob(canvas, cell.outline, chance.near(stain.platelet, 10), 0.9);
  }
}

// About as often as BCCD has them.
int64_t white_count(Chance& chance) {
  const double draw = chance.between(0, 1);
  return draw < 0.06 ? 0 : draw < 0.94 ? 1 : 2;
}

int64_t platelet_count(Chance& chance) {
  return chance.happens(0.45) ? 0 : chance.happens(0.7) ? 1 : chance.count(2, 5);
}

}  // namespace

const std::vector<std::string>& cell_classes() {
  static const std::vector<std::string> names = {"RBC", "WBC", "Platelets"};
  return names;
}

DrawnScene draw_cells(ImageSize size, uint64_t seed, uint64_t index) {
  check(std::min(size.height, size.width) >= 64 && std::max(size.height, size.width) <= 16384,
        ErrorKind::usage, "cells: images of {} x {} pixels; edges of 64 to 16384 are needed",
        size.width, size.height);
  Chance chance(seed, "scenes/cells", index);
  Canvas canvas(size);
  const Stain stain = drawn_stain(chance);
  canvas.fill(chance.near(stain.back, 8), chance.near(stain.back, 8),
              chance.between(0, 2 * std::numbers::pi));
  Smear smear(size, chance);
  smear.add(kWhites, white_count(chance));
  smear.add(kReds, chance.count(2, 21));
  smear.add(kPlatelets, platelet_count(chance));
  DrawnScene scene;
  for (const int32_t kind : {kRed, kWhite, kPlatelet}) {
    for (const Cell& cell : smear.cells()) {
      if (cell.kind != kind) continue;
      paint(canvas, cell, stain, chance);
      scene.boxes.push_back({.box = cell.seen, .label = kind});
    }
  }
  canvas.soften(static_cast<float>(chance.between(0.3, 1)));
  scene.image = canvas.finish(chance.between(1, 4), chance);
  return scene;
}

}  // namespace heddle
