// Opening sets of images, and holding some of them out.
#include "heddle/data/images.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/base/progress.h"
#include "heddle/base/rng.h"

namespace heddle {
namespace {

// "40,000 images of 10 classes, 32 x 32 pixels"
std::string described(const ImageSet& set) {
  ImageSize least = set.image(0).size, most = least;
  for (int64_t i = 1; i < set.size(); ++i) {
    const auto [height, width] = set.image(i).size;
    least = {std::min(least.height, height), std::min(least.width, width)};
    most = {std::max(most.height, height), std::max(most.width, width)};
  }
  const auto words = [](ImageSize s) { return fmt::format("{} x {}", s.width, s.height); };
  return fmt::format("{} of {}, {}{} pixels", counted(set.size(), "image"),
                     counted(std::ssize(set.labels()), "class", "classes"), words(least),
                     least == most ? "" : " to " + words(most));
}

// Of each class the first ones of a random order, as many as `count` says of the class's images;
// both parts keep the order of the files.
template <class Count>
ChosenImages choose(const ImageSet& all, const char* site, uint64_t seed, const Count& count) {
  std::vector<int64_t> chosen, others;
  const std::vector<std::vector<int64_t>> classes = all.by_label();
  for (size_t label = 0; label < classes.size(); ++label) {
    std::vector<int64_t> images = classes[label];
    RngStream random(make_key(seed, 0, hash_name(site), label));
    shuffle_values(images, random);
    const auto end = images.begin() + count(std::ssize(images));
    chosen.insert(chosen.end(), images.begin(), end);
    others.insert(others.end(), end, images.end());
  }
  std::ranges::sort(chosen);
  std::ranges::sort(others);
  return {all.select(chosen), all.select(others)};
}

int64_t rounded_up(double share, int64_t n) {
  return static_cast<int64_t>(std::ceil(share * static_cast<double>(n)));
}

ImageSplit hold_out(const ImageSet& all, double share, uint64_t seed) {
  const auto [val, train] = choose(all, "data/held-out images", seed, [&](int64_t n) {
    return std::clamp<int64_t>(rounded_up(share, n), 0, std::max<int64_t>(0, n - 1));
  });
  check(val.size() > 0, ErrorKind::data,
        "of {} none can be held out; give `val_data`, or another `val_share`",
        counted(all.size(), "image"));
  return {train, val};
}

void check_classes(const ImageSet& train, const std::string& path) {
  const std::vector<std::vector<int64_t>> classes = train.by_label();
  const auto used =
      std::ranges::count_if(classes, [](const auto& images) { return !images.empty(); });
  check(used >= 2, ErrorKind::data,
        "{}: all images are of the class '{}'; there is nothing to tell apart", path,
        train.labels()[static_cast<size_t>(train.label(0))]);
}

}  // namespace

ImageSet::ImageSet(ImageCache cache, std::string root)
    : CachedImages(std::move(cache), std::move(root)) {}

std::string ImageSet::key() const {
  return checksum(fmt::format("{} {}", cache_.key(), chosen_.key()));
}

ImageSet ImageSet::select(const std::vector<int64_t>& images) const {
  return selected(*this, images);
}

std::vector<std::vector<int64_t>> ImageSet::by_label() const {
  std::vector<std::vector<int64_t>> images(labels().size());
  for (int64_t i = 0; i < size(); ++i) images[static_cast<size_t>(label(i))].push_back(i);
  return images;
}

ImageSet cached_set(const ImageSource& source, const std::string& name,
                    const ImageSetOptions& options, const CacheLog& log) {
  return ImageSet(
      ImageCache::open_or_build(
          source, {.folder = options.cache_dir, .name = name, .edge = options.cache_edge}, log),
      source.root);
}

ImageSplit open_image_split(const ImageSetOptions& options, const CacheLog& log,
                            const std::function<void(const ImageSource&)>& look) {
  const ImageSources found = find_images(options.path);
  check(found.train != nullptr, ErrorKind::data,
        "{}: there are held-out images alone, and none to train on", options.path);
  UnreadPart<ImageSource> held_out = found.val ? found.val : found.test;
  if (!options.val_path.empty()) {
    const ImageSources others = find_images(options.val_path);
    held_out = others.val ? others.val : others.test ? others.test : others.train;
  }
  const ImageSource to_train = found.train();
  std::optional<ImageSource> held;  // looked at before the long work
  if (held_out) relabel(held.emplace(held_out()), to_train.labels);
  if (look) look(to_train);
  ImageSet train = cached_set(to_train, "train", options, log);
  check_classes(train, options.path);
  ImageSplit split = held ? ImageSplit{train, cached_set(*held, "val", options, log)}
                          : hold_out(train, options.val_share, options.seed);
  check(split.train.channels() == split.val.channels(), ErrorKind::data,
        "{}: images to train on have {} channels, those held out {}", options.path,
        split.train.channels(), split.val.channels());
  if (log) {
    log("train: " + described(split.train));
    log("val: " + described(split.val));
  }
  return split;
}

ChosenImages choose_share(const ImageSet& all, double share, uint64_t seed) {
  return choose(all, "data/labelled images", seed,
                [&](int64_t n) { return std::min(n, rounded_up(share, n)); });
}

ImageSet open_unlabelled_set(const ImageSetOptions& options, const CacheLog& log) {
  ImageSet set = cached_set(find_unlabelled(options.path), "unlabelled", options, log);
  if (log) log(fmt::format("unlabelled: {}", counted(set.size(), "image")));
  return set;
}

}  // namespace heddle
