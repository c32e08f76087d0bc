// Opening sets of images with boxes, cleaning the boxes, and holding some images out.
#include "heddle/data/detections.h"

#include <algorithm>
#include <utility>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/base/log.h"
#include "heddle/base/progress.h"
#include "heddle/base/rng.h"

namespace heddle {
namespace {

constexpr size_t kMostNamed = 5;  // of faults of a kind

std::string words(const Box& b) {
  return fmt::format("({:g}, {:g}, {:g}, {:g})", b.x0, b.y0, b.x1, b.y1);
}

double area_of(ImageSize size) {
  return static_cast<double>(size.height) * static_cast<double>(size.width);
}

std::string described(const DetectionSet& set) {
  int64_t boxes = 0;
  for (int64_t i = 0; i < set.size(); ++i) boxes += std::ssize(set.boxes(i));
  return fmt::format("{} with {} of {}, at most {} an image", counted(set.size(), "image"),
                     counted(boxes, "box", "boxes"),
                     counted(std::ssize(set.classes()), "class", "classes"), set.most_boxes());
}

DetectionSplit hold_out(const DetectionSet& all, double share, uint64_t seed,
                        const std::string& path) {
  const RngKey key = make_key(seed, 0, hash_name("data/held-out images of boxes"));
  const HeldOutImages parts = hold_out_share(all.size(), share, key, path);
  return {all.select(parts.others), all.select(parts.held_out)};
}

std::string key_of(const std::vector<std::vector<LabelledBox>>& boxes,
                   const std::vector<std::string>& classes, const std::vector<int64_t>& ids) {
  std::string text = fmt::format("{}\n", fmt::join(classes, "\n"));
  for (size_t i = 0; i < boxes.size(); ++i) {
    text += fmt::format("{}:", ids[i]);
    for (const LabelledBox& b : boxes[i]) {
      text += fmt::format(" {} {} {} {} {} {} {}", b.box.x0, b.box.y0, b.box.x1, b.box.y1, b.label,
                          b.is_crowd, b.area.value_or(0));
      if (b.area == 0.0) text += " none";  // another one than that of the box
    }
    text += '\n';
  }
  return checksum(text);
}

}  // namespace

void BoxCleaner::Faults::add(std::string what) {
  if (count++ < static_cast<int64_t>(kMostNamed)) first.push_back(std::move(what));
}

std::string BoxCleaner::Faults::text() const {
  return fmt::format(
      "{}{}", fmt::join(first, "; "),
      count > std::ssize(first) ? fmt::format("; and {} more", count - std::ssize(first)) : "");
}

void BoxCleaner::compare_size(const DetectionSource& source, size_t entry, ImageSize file) {
  const ImageSize said = source.sizes[entry];
  if (said.height <= 0 || said.width <= 0 || said == file) return;
  resized_.add(fmt::format("{} is {} x {}, not {} x {}", source.images.entries[entry].name,
                           file.width, file.height, said.width, said.height));
}

std::vector<LabelledBox> BoxCleaner::clean(const DetectionSource& source, size_t entry,
                                           ImageSize file, ImageSize shown) {
  compare_size(source, entry, file);
  const std::string& name = source.images.entries[entry].name;
  std::vector<LabelledBox> kept;
  for (LabelledBox one : source.boxes[entry]) {
    const auto what = [&] { return fmt::format("{} {}", name, words(one.box)); };
    const Box inside = clipped(one.box, file);
    if (one.box.area() <= 0) {
      flat_.add(what());
    } else if (inside.area() <= 0) {
      outside_.add(what());
    } else {
      if (inside != one.box) clipped_.add(what());
      one.box = clipped(resized(inside, file, shown), shown);  // but for rounding
      if (one.area) *one.area *= area_of(shown) / area_of(file);
      kept.push_back(one);
    }
  }
  return kept;
}

void BoxCleaner::warn(const std::string& file) const {
  const auto say = [&](const Faults& faults, const char* what) {
    if (faults.count == 0) return;
    log_warning("{}: {} {}: {}", file, counted(faults.count, "box", "boxes"), what, faults.text());
  };
  say(flat_, "dropped, of no area");
  say(outside_, "dropped, outside the image");
  say(clipped_, "clipped to the image");
  if (resized_.count > 0) {
    log_warning("{}: {} of another size than the file says, so boxes may lie elsewhere: {}", file,
                counted(resized_.count, "image"), resized_.text());
  }
}

DetectionSet::DetectionSet(ImageCache cache, std::string root, Shared shared)
    : CachedImages(std::move(cache), std::move(root)),
      shared_(std::make_shared<const Shared>(std::move(shared))) {}

std::span<const LabelledBox> DetectionSet::boxes(int64_t i) const {
  return shared_->boxes[static_cast<size_t>(chosen_[i])];
}

int64_t DetectionSet::id(int64_t i) const { return shared_->ids[static_cast<size_t>(chosen_[i])]; }

int64_t DetectionSet::most_boxes() const {
  int64_t most = 0;
  for (int64_t i = 0; i < size(); ++i) {
    most = std::max<int64_t>(most, std::ranges::count(boxes(i), false, &LabelledBox::is_crowd));
  }
  return most;
}

std::string DetectionSet::key() const {
  return checksum(fmt::format("{} {} {}", cache_.key(), shared_->key, chosen_.key()));
}

DetectionSet DetectionSet::select(const std::vector<int64_t>& images) const {
  return selected(*this, images);
}

DetectionSet cached_detections(const DetectionSource& source, const std::string& name,
                               const DetectionSetOptions& options, const CacheLog& log) {
  ImageCache cache = ImageCache::open_or_build(
      source.images, {.folder = options.cache_dir, .name = name, .edge = options.cache_edge}, log);
  DetectionSet::Shared shared{.classes = source.classes, .category_ids = source.category_ids};
  BoxCleaner cleaner;
  const std::vector<size_t> entries = cached_entries(source.images, cache, source.file);
  for (int64_t i = 0; i < cache.size(); ++i) {
    const size_t entry = entries[static_cast<size_t>(i)];
    shared.boxes.push_back(
        cleaner.clean(source, entry, cache.original_size(i), cache.image(i).size));
    shared.ids.push_back(source.ids[entry]);
  }
  cleaner.warn(source.file);
  shared.key = key_of(shared.boxes, shared.classes, shared.ids);
  return DetectionSet(std::move(cache), source.images.root, std::move(shared));
}

DetectionSplit open_detection_split(const DetectionSetOptions& options, const CacheLog& log) {
  check(options.class_names.empty() || is_box_table(options.path) ||
            (!options.val_path.empty() && is_box_table(options.val_path)),
        ErrorKind::usage,
        "{}: its files name their classes; leave `class_names` out (empty, where a recipe has "
        "them), which are those of a table of boxes (boxes.tsv)",
        options.path);
  DetectionSources found = find_detections(options.path, options.class_names);
  check(found.train != nullptr, ErrorKind::data,
        "{}: there are held-out images alone, and none to train on", options.path);
  UnreadPart<DetectionSource> held_out = found.val ? found.val : found.test;
  if (!options.val_path.empty()) {
    DetectionSources others = find_detections(options.val_path, options.class_names);
    held_out = others.val ? others.val : others.test ? others.test : others.train;
  }
  const DetectionSource to_train = found.train();
  std::optional<DetectionSource> held;  // looked at before the long work
  if (held_out) relabel(held.emplace(held_out()), to_train.classes);
  const DetectionSet train = cached_detections(to_train, "train", options, log);
  check(train.most_boxes() > 0, ErrorKind::data, "{}: there is no box in any image to train on",
        options.path);
  DetectionSplit split = held ? DetectionSplit{train, cached_detections(*held, "val", options, log)}
                              : hold_out(train, options.val_share, options.seed, options.path);
  if (log) {
    log("train: " + described(split.train));
    log("val: " + described(split.val));
  }
  return split;
}

}  // namespace heddle
