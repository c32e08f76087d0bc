// Which photos are whose.
#include "heddle/train/batches/photo_pools.h"

#include <memory>

#include "heddle/base/error.h"
#include "heddle/data/image_cache.h"
#include "heddle/data/image_sources.h"

namespace heddle::train {
namespace {

// Without photos yet.
PhotoPool pool_of(ImageSource source) {
  PhotoPool pool{.classes = source.labels};
  pool.by_class.resize(pool.classes.size());
  const auto shared = std::make_shared<const ImageSource>(std::move(source));
  pool.photo = [shared](size_t i) {
    const DecodedImage photo = shared->decode(i, shared->path(i));
    return ImageView{photo.pixels.data(), photo.size, shared->channels}.rgb();
  };
  pool.name = [shared](size_t i) { return shared->entries[i].name; };
  return pool;
}

std::vector<std::vector<size_t>> by_class(const ImageSource& source) {
  std::vector<std::vector<size_t>> photos(source.labels.size());
  for (size_t i = 0; i < source.entries.size(); ++i) {
    photos[static_cast<size_t>(source.entries[i].label)].push_back(i);
  }
  return photos;
}

}  // namespace

PhotoPools open_photo_pools(const std::string& path) {
  const ImageSources found = find_images(path);
  const UnreadPart<ImageSource>& held_out = found.test ? found.test : found.val;
  check(
      found.train && held_out, ErrorKind::data,
      "{}: has no photos that are held out; collages to test on are made of such alone, so give a "
      "set with train and test",
      path);
  ImageSource train = found.train(), test = held_out();
  relabel(test, train.labels);
  const std::vector<std::vector<size_t>> to_train = by_class(train), to_test = by_class(test);
  PhotoPool photos = pool_of(std::move(train));
  PhotoPools pools{photos, photos, pool_of(std::move(test))};
  for (size_t label = 0; label < to_train.size(); ++label) {
    const std::vector<size_t>& all = to_train[label];
    check(
        all.size() != 1, ErrorKind::data,
        "{}: class '{}' has one photo to train on; two are needed at least, since a tenth of them, "
        "rounded up, is for val alone",
        path, photos.classes[label]);
    const auto end = all.end() - static_cast<std::ptrdiff_t>((all.size() + 9) / 10);
    pools.train.by_class[label].assign(all.begin(), end);
    pools.val.by_class[label].assign(end, all.end());
  }
  pools.test.by_class = to_test;
  for (const PhotoPool* pool : {&pools.train, &pools.val, &pools.test}) check_photos(*pool, path);
  return pools;
}

}  // namespace heddle::train
