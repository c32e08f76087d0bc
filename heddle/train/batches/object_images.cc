// The two kinds of images with objects, and counting what they show.
#include "heddle/train/batches/object_images.h"

#include <algorithm>

#include "corpora/scenes.h"
#include "heddle/base/files/files.h"
#include "heddle/base/parallel.h"

namespace heddle::train {
namespace {

bool are_cells(const DrawnOptions& o) { return o.kind == "cells"; }

DrawnScene draw(const DrawnOptions& o, uint64_t index) {
  if (are_cells(o)) return draw_cells(o.size, o.seed, index);
  ShapeOptions shapes;
  shapes.size = o.size;
  return draw_shapes(shapes, o.seed, index);
}

ObjectImages drawn_part(const DrawnOptions& o, int64_t first, int64_t count) {
  static_cast<void>(draw(o, 0));  // says what does not fit
  ObjectImages part{.size = count,
                    .classes = are_cells(o) ? cell_classes() : shape_classes(),
                    .key = fmt::format("drawn 1 {} {} {}x{} {} from {}", o.kind, count,
                                       o.size.height, o.size.width, o.seed, first)};
  part.at = [o, first](int64_t i) {
    DrawnScene scene = draw(o, static_cast<uint64_t>(first + i));
    return BoxedImage{std::move(scene.image), std::move(scene.boxes)};
  };
  part.boxes = [at = part.at](int64_t i) { return at(i).boxes; };
  part.image_size = [size = o.size](int64_t) { return size; };
  part.id = [](int64_t i) { return i + 1; };
  part.name = [o, first](int64_t i) { return fmt::format("drawn {} {}", o.kind, first + i); };
  return part;
}

}  // namespace

ObjectImages ObjectImages::of(const DetectionSet& set) {
  ObjectImages images{
      .size = set.size(), .classes = set.classes(), .key = set.key(), .cache = set.cache_path()};
  images.boxes = [set](int64_t i) {
    const std::span<const LabelledBox> boxes = set.boxes(i);
    return std::vector<LabelledBox>(boxes.begin(), boxes.end());
  };
  images.at = [set, boxes = images.boxes](int64_t i) {
    return BoxedImage{set.image(i).rgb(), boxes(i)};
  };
  images.image_size = [set](int64_t i) { return set.image(i).size; };
  images.id = [set](int64_t i) { return set.id(i); };
  images.name = [set](int64_t i) { return set.path(i); };
  return images;
}

ObjectImages ObjectImages::select(const std::vector<int64_t>& images) const {
  const Selection chosen = Selection(size).select(images);
  const auto of_chosen = [&](const auto& f) {
    return [chosen, f](int64_t i) { return f(chosen[i]); };
  };
  return {.size = chosen.size(),
          .classes = classes,
          .key = checksum(fmt::format("{} {}", key, chosen.key())),
          .cache = cache,
          .at = of_chosen(at),
          .boxes = of_chosen(boxes),
          .image_size = of_chosen(image_size),
          .id = of_chosen(id),
          .name = of_chosen(name)};
}

std::vector<std::string> drawn_kinds() { return {"shapes", "cells"}; }

ObjectSplit drawn_images(const DrawnOptions& o) {
  return {drawn_part(o, o.held_out, o.images), drawn_part(o, 0, o.held_out)};
}

ObjectCounts count_objects(const ObjectImages& images, int64_t most_images, int64_t places) {
  ObjectCounts counts{.of_class = std::vector<int64_t>(images.classes.size())};
  counts.images = std::min(images.size, most_images);
  std::vector<std::vector<int32_t>> labels(static_cast<size_t>(counts.images));
  parallel_for(counts.images, [&](int64_t i) {
    for (const LabelledBox& one : images.boxes(i * images.size / counts.images)) {
      if (!one.is_crowd) labels[static_cast<size_t>(i)].push_back(one.label);
    }
  });
  for (const std::vector<int32_t>& here : labels) {
    for (const int32_t label : here) ++counts.of_class[static_cast<size_t>(label)];
    counts.objects += std::ssize(here);
    counts.most = std::max(counts.most, std::ssize(here));
    counts.beyond += std::max<int64_t>(0, std::ssize(here) - places);
  }
  return counts;
}

}  // namespace heddle::train
