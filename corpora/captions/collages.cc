// Photos side by side, with captions.
#include <algorithm>

#include "corpora/captions/captioned_scenes.h"
#include "corpora/placed_shape.h"
#include "heddle/base/error.h"
#include "heddle/vision/image_ops.h"
#include "heddle/vision/resize.h"

namespace heddle {
namespace {

using drawing::Canvas;
using drawing::Chance;
using drawing::Color;

constexpr int64_t kCells = 3;  // a row, and a column
constexpr double kRepeats = 1.0 / 3;

// The held-out pairs both classes of which the pool has.
std::vector<std::vector<size_t>> pairs_in(const PhotoPool& pool) {
  std::vector<std::vector<size_t>> pairs;
  const auto place = [&](const std::string& noun) {
    return static_cast<size_t>(std::ranges::find(pool.classes, noun) - pool.classes.begin());
  };
  for (const auto& [a, b] : held_out_pairs()) {
    if (std::max(place(a), place(b)) < pool.classes.size()) pairs.push_back({place(a), place(b)});
  }
  return pairs;
}

// The classes of a collage: two or more different ones.
std::vector<size_t> drawn_classes(const CaptionedSceneOptions& o, const PhotoPool& pool,
                                  Chance& chance) {
  const auto count = static_cast<size_t>(chance.count(kLeastCollagePhotos, o.most_objects));
  std::vector<size_t> classes;
  if (o.captions.is_unseen) {
    const std::vector<std::vector<size_t>> pairs = pairs_in(pool);
    classes = pairs[chance.one_of(pairs.size())];
  }
  while (classes.size() < count) {
    const bool is_repeat = chance.happens(kRepeats) && classes.size() >= 2;
    const size_t chosen =
        is_repeat ? classes[chance.one_of(classes.size())] : chance.one_of(pool.classes.size());
    if (classes.size() == 1 && chosen == classes[0]) continue;
    classes.push_back(chosen);
  }
  return classes;
}

// The middle of a photo, scaled.
Image fitted(const Image& photo, int64_t edge) {
  const int64_t shorter = std::min(photo.height, photo.width);
  const Image square = crop(photo, {.top = (photo.height - shorter) / 2,
                                    .left = (photo.width - shorter) / 2,
                                    .height = shorter,
                                    .width = shorter});
  return shorter == edge ? square : resize(square, edge, edge, Resample::bilinear);
}

void paste(Canvas& canvas, const Image& image, int64_t left, int64_t top) {
  const auto x0 = static_cast<double>(left), y0 = static_cast<double>(top);
  const Box box{x0, y0, x0 + static_cast<double>(image.width),
                y0 + static_cast<double>(image.height)};
  canvas.paint(box, {}, [&](double x, double y, Color& color) {
    if (x < box.x0 || y < box.y0 || x >= box.x1 || y >= box.y1) return 0.0;
    const uint8_t* pixel =
        image.row(static_cast<int64_t>(y - y0)) + 3 * static_cast<int64_t>(x - x0);
    for (size_t c = 0; c < 3; ++c) color[c] = pixel[c];
    return 1.0;
  });
}

// So many of the cells, in any order.
std::vector<int64_t> drawn_cells(size_t count, Chance& chance) {
  std::vector<int64_t> cells;
  for (int64_t i = 0; i < kCells * kCells; ++i) cells.push_back(i);
  for (size_t i = 0; i < count; ++i)
    std::swap(cells[i], cells[i + chance.one_of(cells.size() - i)]);
  cells.resize(count);
  return cells;
}

void check_options(const CaptionedSceneOptions& o, const PhotoPool& pool) {
  const auto [height, width] = o.size;
  check(std::min(height, width) >= 48 && std::max(height, width) <= 4096, ErrorKind::usage,
        "collages: images of {} x {} pixels; edges of 48 to 4096 are needed", width, height);
  check(o.most_objects >= kLeastCollagePhotos && o.most_objects <= kMostCollagePhotos,
        ErrorKind::usage, "collages: {} photos at most; from {} to {} are needed", o.most_objects,
        kLeastCollagePhotos, kMostCollagePhotos);
  check(!o.captions.is_unseen || !pairs_in(pool).empty(), ErrorKind::usage,
        "collages: no two of these classes are a pair that is held out: {}",
        fmt::join(pool.classes, ", "));
}

}  // namespace

void check_photos(const PhotoPool& pool, const std::string& path) {
  for (const std::string& name : pool.classes) {
    check(std::ranges::find(caption_classes(), name) != caption_classes().end(), ErrorKind::data,
          "{}: captions have no noun for photos of class '{}'; they have {}", path, name,
          fmt::join(caption_classes(), ", "));
  }
  check(pool.classes.size() >= 2, ErrorKind::data,
        "{}: photos of {} classes; two are needed to relate", path, pool.classes.size());
  for (size_t label = 0; label < pool.classes.size(); ++label) {
    check(!pool.by_class.at(label).empty(), ErrorKind::data, "{}: there is no photo of class '{}'",
          path, pool.classes[label]);
  }
}

CaptionedScene draw_collage(const CaptionedSceneOptions& o, const PhotoPool& pool, uint64_t seed,
                            uint64_t index) {
  check_options(o, pool);
  Chance chance(seed, "scenes/collages", index);
  const std::vector<size_t> classes = drawn_classes(o, pool, chance);
  const std::vector<int64_t> cells = drawn_cells(classes.size(), chance);
  Canvas canvas(o.size);
  drawing::fill(canvas, drawing::drawn_background(chance), chance);
  CaptionedScene result{.scene = {.size = o.size}};
  const int64_t height = o.size.height / kCells, width = o.size.width / kCells,
                cell = std::min(height, width);
  for (size_t i = 0; i < classes.size(); ++i) {
    const std::vector<size_t>& photos = pool.by_class[classes[i]];
    const size_t photo = photos[chance.one_of(photos.size())];
    const int64_t edge = chance.count((3 * cell + 3) / 4, cell),
                  left = cells[i] % kCells * width + chance.count(0, width - edge),
                  top = cells[i] / kCells * height + chance.count(0, height - edge);
    Image shown = fitted(pool.photo(photo), edge);
    if (chance.happens(0.5)) flip_columns(shown);
    paste(canvas, shown, left, top);
    const auto length = static_cast<double>(edge);
    result.scene.objects.push_back(
        {.sort = {.color = "", .noun = pool.classes[classes[i]]},
         .box = Box::of_corner(static_cast<double>(left), static_cast<double>(top), length, length),
         .photo = pool.name(photo)});
  }
  result.image = canvas.finish(0, chance);
  result.captions = true_captions(result.scene, o.captions, chance);
  return result;
}

}  // namespace heddle
