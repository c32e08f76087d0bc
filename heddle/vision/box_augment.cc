// A part of an image is cut out and resized, then turned; its boxes take the same way.
#include "heddle/vision/box_augment.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "heddle/base/error.h"
#include "heddle/vision/image_ops.h"

namespace heddle {
namespace {

// What is cut out of an image, and the size that it gets.
struct Cut {
  PixelBox part;
  ImageSize size;
};

std::vector<LabelledBox> boxes_in(const Cut& cut, const std::vector<LabelledBox>& boxes,
                                  double min_visible) {
  const ImageSize part{cut.part.height, cut.part.width};
  std::vector<LabelledBox> kept;
  for (LabelledBox one : boxes) {
    const Box there = moved(one.box, -static_cast<double>(cut.part.left),
                            -static_cast<double>(cut.part.top)),
              seen = clipped(there, part),
              result = clipped(resized(seen, part, cut.size), cut.size);
    if (seen.area() <= 0 || seen.area() < min_visible * there.area()) continue;
    if (result.width() < 1 || result.height() < 1) continue;
    one.box = result;
    one.area.reset();
    kept.push_back(one);
  }
  return kept;
}

BoxedImage cut_out(const BoxedImage& one, const Cut& cut, double min_visible) {
  const bool is_whole = one.image.size() == ImageSize{cut.part.height, cut.part.width};
  Image part = is_whole ? Image() : crop(one.image, cut.part);
  const Image& from = is_whole ? one.image : part;
  if (from.size() != cut.size) {
    part = resize(from, cut.size.height, cut.size.width, Resample::bilinear);
  } else if (is_whole) {
    part = one.image;
  }
  return {std::move(part), boxes_in(cut, one.boxes, min_visible)};
}

// Below it models with four halvings see nothing.
constexpr int64_t kLeastEdge = 16;

// Along one edge: how long the part is, and what becomes of its length.
struct EdgeCut {
  int64_t part, result;

  EdgeCut(int64_t edge, int64_t target, double scale, double share) {
    const auto whole = static_cast<double>(edge);
    part = std::clamp<int64_t>(std::llrint(whole * share / std::max(scale, 1.0)), 1, edge);
    result = std::max<int64_t>(
        std::min(kLeastEdge, target),
        std::llrint(static_cast<double>(target) * scale * static_cast<double>(part) / whole));
  }
};

Cut draw_cut(ImageSize size, ImageSize target, const BoxAugmentation& how,
             const AugmentDraw& draw) {
  RngStream random = draw.stream("augment/boxes/cut");
  // As likely to be twice as large as half as large.
  const double scale = std::exp(random.between(std::log(how.scale_low), std::log(how.scale_high)));
  const bool is_cropped = how.crop_edges < 1 && random.below(2) == 1;
  const auto share = [&] { return is_cropped ? random.between(how.crop_edges, 1) : 1.0; };
  const EdgeCut rows(size.height, target.height, scale, share()),
      columns(size.width, target.width, scale, share());
  return {draw_place(size, {rows.part, columns.part}, random), {rows.result, columns.result}};
}

void turn_and_color(BoxedImage& one, const BoxAugmentation& how, const AugmentDraw& draw) {
  if (how.turns != "none") {
    const uint64_t kinds = how.turns == "columns" ? 2 : how.turns == "both" ? 4 : 8;
    one = turned(std::move(one), static_cast<int>(draw.stream("augment/boxes/turn").below(kinds)));
  }
  if (how.box_color_jitter > 0) {
    RngStream random = draw.stream("augment/boxes/color_jitter");
    jitter_colors(one.image, how.box_color_jitter, random);
  }
}

// A part of an image of a quarter's shape, from the largest that there is down to 3/4 of it.
Cut draw_quarter(ImageSize size, ImageSize quarter, RngStream& random) {
  const double height = static_cast<double>(size.height), width = static_cast<double>(size.width),
               rows = static_cast<double>(quarter.height),
               columns = static_cast<double>(quarter.width);
  const double factor = std::min(height / rows, width / columns) * random.between(0.75, 1);
  const int64_t part_height = std::clamp<int64_t>(std::llrint(rows * factor), 1, size.height),
                part_width = std::clamp<int64_t>(std::llrint(columns * factor), 1, size.width);
  return {draw_place(size, {part_height, part_width}, random), quarter};
}

void put(const BoxedImage& part, int64_t top, int64_t left, BoxedImage& whole) {
  for (int64_t y = 0; y < part.image.height; ++y) {
    std::copy_n(part.image.row(y), part.image.row_bytes(), whole.image.row(top + y) + 3 * left);
  }
  for (LabelledBox one : part.boxes) {
    one.box = moved(one.box, static_cast<double>(left), static_cast<double>(top));
    whole.boxes.push_back(one);
  }
}

// The whole pixels that a box touches.
PixelBox around(const Box& box, ImageSize image) {
  const auto left = static_cast<int64_t>(std::floor(std::max(0.0, box.x0))),
             top = static_cast<int64_t>(std::floor(std::max(0.0, box.y0)));
  const int64_t right = std::min(image.width, static_cast<int64_t>(std::ceil(box.x1))),
                bottom = std::min(image.height, static_cast<int64_t>(std::ceil(box.y1)));
  return {.top = top, .left = left, .height = bottom - top, .width = right - left};
}

// Where a part hides little of what is there, if some tries find such a position.
std::optional<PixelBox> draw_room(const BoxedImage& whole, ImageSize part, RngStream& random) {
  constexpr int kTries = 8;
  constexpr double kMostHidden = 0.25;
  if (part.height > whole.image.height || part.width > whole.image.width) return std::nullopt;
  for (int i = 0; i < kTries; ++i) {
    const PixelBox place = draw_place(whole.image.size(), part, random);
    const Box there =
        Box::of_corner(static_cast<double>(place.left), static_cast<double>(place.top),
                       static_cast<double>(part.width), static_cast<double>(part.height));
    const bool has_room = std::ranges::all_of(whole.boxes, [&](const LabelledBox& one) {
      return intersection(one.box, there).area() <= kMostHidden * one.box.area();
    });
    if (has_room) return place;
  }
  return std::nullopt;
}

}  // namespace

void BoxAugmentation::check(const std::string& source) const {
  heddle::check(scale_low <= scale_high, ErrorKind::usage,
                "{}: `scale_low` is {}, above `scale_high` {}", source, scale_low, scale_high);
}

BoxedImage turned(BoxedImage one, int turn) {
  const auto width = static_cast<double>(one.image.width),
             height = static_cast<double>(one.image.height);
  const bool mirrors_columns = (turn & 1) != 0, mirrors_rows = (turn & 2) != 0,
             is_transposed = (turn & 4) != 0;
  if (mirrors_columns) flip_columns(one.image);
  if (mirrors_rows) flip_rows(one.image);
  if (is_transposed) one.image = transposed(one.image);
  for (LabelledBox& each : one.boxes) {
    Box& b = each.box;
    if (mirrors_columns) b = {width - b.x1, b.y0, width - b.x0, b.y1};
    if (mirrors_rows) b = {b.x0, height - b.y1, b.x1, height - b.y0};
    if (is_transposed) b = {b.y0, b.x0, b.y1, b.x1};
  }
  return one;
}

BoxedImage augment_boxes(const BoxedImage& one, const BoxAugmentation& how, ImageSize target,
                         const AugmentDraw& draw) {
  BoxedImage result = cut_out(one, draw_cut(one.image.size(), target, how, draw), how.min_visible);
  turn_and_color(result, how, draw);
  return result;
}

std::optional<std::array<int64_t, 3>> draw_mosaic(const BoxAugmentation& how, int64_t images,
                                                  const AugmentDraw& draw) {
  RngStream random = draw.stream("augment/boxes/mosaic");
  if (!random.happens(how.mosaic)) return std::nullopt;
  std::array<int64_t, 3> others;
  for (int64_t& other : others) other = random.index(images);
  return others;
}

BoxedImage augment_mosaic(std::span<const BoxedImage> four, const BoxAugmentation& how,
                          ImageSize target, const AugmentDraw& draw) {
  heddle::check(four.size() == 4, ErrorKind::internal, "mosaic of {} images", four.size());
  heddle::check(target.height >= 4 && target.width >= 4, ErrorKind::usage,
                "mosaic of {} x {} pixels; 4 x 4 are needed", target.height, target.width);
  RngStream random = draw.stream("augment/boxes/quarters");
  const auto middle = [&](int64_t edge) {
    return std::clamp<int64_t>(std::llrint(static_cast<double>(edge) * random.between(0.35, 0.65)),
                               1, edge - 1);
  };
  const int64_t row = middle(target.height), column = middle(target.width);
  BoxedImage whole{Image(target.height, target.width), {}};
  for (size_t i = 0; i < 4; ++i) {
    const bool is_lower = i >= 2, is_right = i % 2 == 1;
    const ImageSize quarter{is_lower ? target.height - row : row,
                            is_right ? target.width - column : column};
    const Cut cut = draw_quarter(four[i].image.size(), quarter, random);
    put(cut_out(four[i], cut, how.min_visible), is_lower ? row : 0, is_right ? column : 0, whole);
  }
  turn_and_color(whole, how, draw);
  return whole;
}

std::vector<CopiedImage> draw_copied(const BoxAugmentation& how, int64_t images,
                                     const AugmentDraw& draw) {
  RngStream random = draw.stream("augment/boxes/copied");
  std::vector<CopiedImage> copied;
  for (int64_t i = 1; i < how.dense_targets; ++i) {
    const int64_t image = random.index(images);
    const uint64_t high = random.next(), low = random.next();  // each in a way of its own
    copied.push_back({image, {high << 32 | low, draw.epoch, draw.sample}});
  }
  return copied;
}

void copy_objects(BoxedImage& one, std::span<const BoxedImage> others, const BoxAugmentation& how,
                  int64_t most, const AugmentDraw& draw) {
  RngStream random = draw.stream("augment/boxes/copies");
  for (const BoxedImage& other : others) {
    for (const LabelledBox& object : other.boxes) {
      if (object.is_crowd) continue;
      const PixelBox pixels = around(object.box, other.image.size());
      const ImageSize size{pixels.height, pixels.width};
      const BoxedImage part = cut_out(other, {pixels, size}, how.min_visible);
      if (std::ssize(one.boxes) + std::ssize(part.boxes) > most) continue;
      if (const auto room = draw_room(one, size, random)) put(part, room->top, room->left, one);
    }
  }
}

BoxedImage augment_of_set(const BoxedSet& set, const BoxAugmentation& how, int64_t most,
                          const AugmentDraw& draw) {
  BoxedImage one = set.at(static_cast<int64_t>(draw.sample));
  const ImageSize target = set.target(one.image.size());
  BoxedImage changed;
  if (const auto others = draw_mosaic(how, set.size, draw)) {
    const std::array four = {std::move(one), set.at((*others)[0]), set.at((*others)[1]),
                             set.at((*others)[2])};
    changed = augment_mosaic(four, how, target, draw);
  } else {
    changed = augment_boxes(one, how, target, draw);
  }
  std::vector<BoxedImage> others;
  for (const CopiedImage& c : draw_copied(how, set.size, draw)) {
    others.push_back(augment_boxes(set.at(c.image), how, target, c.draw));
  }
  copy_objects(changed, others, how, most, draw);
  return changed;
}

}  // namespace heddle
