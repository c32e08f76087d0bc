// Some of the images of a cache.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "heddle/base/rng.h"
#include "heddle/data/image_cache.h"

namespace heddle {

/// Numbers of images in a cache, in any order. Copies share them.
class Selection {
 public:
  /// All of 0 .. count - 1.
  explicit Selection(int64_t count);

  int64_t size() const { return std::ssize(*chosen_); }
  int64_t operator[](int64_t i) const { return (*chosen_)[static_cast<size_t>(i)]; }
  /// Those at some places of this selection. Errors: internal for a place that there is not.
  Selection select(const std::vector<int64_t>& places) const;
  /// 16 hex digits: equal for the same numbers in the same order.
  std::string key() const;

 private:
  std::shared_ptr<const std::vector<int64_t>> chosen_;
};

/// Images in a cache, all or some: what sets of them share. Copies share them.
class CachedImages {
 public:
  int64_t size() const { return chosen_.size(); }
  int64_t channels() const { return cache_.channels(); }  ///< 3, or 1 of a grey set
  /// 0 <= i < size(), here and in sets of any kind.
  ImageView image(int64_t i) const { return cache_.image(chosen_[i]); }
  /// The size of the image's file; a cache's edge makes image(i) smaller.
  ImageSize original_size(int64_t i) const { return cache_.original_size(chosen_[i]); }
  const std::string& cache_path() const { return cache_.path(); }
  /// Of the image's file; of one of many in a file "FILE: image 7", in an archive "ARCHIVE: NAME".
  std::string path(int64_t i) const {
    return join_path(root_, std::string(cache_.name(chosen_[i])));
  }

 protected:
  CachedImages(ImageCache cache, std::string root)
      : cache_(std::move(cache)), root_(std::move(root)), chosen_(cache_.size()) {}
  /// Some of a set's images.
  template <class Set>
  static Set selected(Set set, const std::vector<int64_t>& images) {
    set.chosen_ = set.chosen_.select(images);
    return set;
  }

  ImageCache cache_;
  std::string root_;
  Selection chosen_;
};

/// Numbers of images, rising.
struct HeldOutImages {
  std::vector<int64_t> held_out, others;
};
/// The share of so many images, rounded up and chosen by the key, and the others.
/// Errors: data, naming `path`, if either part is empty.
HeldOutImages hold_out_share(int64_t images, double share, RngKey key, const std::string& path);

}  // namespace heddle
