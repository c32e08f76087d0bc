// Sets of labelled images to train and to test on.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "heddle/data/selection.h"

namespace heddle {

struct ImageSetOptions {
  std::string path;            ///< file or folder, see find_images()
  std::string val_path = {};   ///< that of the held-out images; empty: beside or out of `path`
  double val_share = 0.1;      ///< of each class, where no images are held out
  uint64_t seed = 0;           ///< chooses these
  std::string cache_dir = {};  ///< see ImageCacheOptions
  int64_t cache_edge = 0;      ///< the same's `edge`
};

/// Images in the cache, all or some. Copies share them.
class ImageSet : public CachedImages {
 public:
  int32_t label(int64_t i) const { return cache_.label(chosen_[i]); }
  const std::vector<std::string>& labels() const { return cache_.labels(); }
  /// 16 hex digits: equal for the same images with the same labels and names, in the same order.
  std::string key() const;

  /// Some of the images, by their numbers in this set, in any order.
  ImageSet select(const std::vector<int64_t>& images) const;
  /// The numbers of the images of each class.
  std::vector<std::vector<int64_t>> by_label() const;

 private:
  friend ImageSet cached_set(const ImageSource& source, const std::string& name,
                             const ImageSetOptions& options, const CacheLog& log);
  ImageSet(ImageCache cache, std::string root);
};

struct ImageSplit {
  ImageSet train, val;
};

/// The images of a path and those held out, from the cache (made where it is missing), with the
/// labels of the training images. Where none are held out, val_share of each class (rounded up, but
/// one stays), chosen by the seed, is. `log` hears how many there are. `look` sees the images to
/// train on before any is decoded, and throws where that is not worth the time.
/// Errors: those of find_images(), relabel() and ImageCache; data for a path without images to
/// train on, fewer than two classes, or a share that leaves no image to hold out.
ImageSplit open_image_split(const ImageSetOptions& options, const CacheLog& log = nullptr,
                            const std::function<void(const ImageSource&)>& look = nullptr);

/// The images of a part, from the cache, whose name begins with `name`. Of the options those of the
/// cache count. Errors: those of ImageCache.
ImageSet cached_set(const ImageSource& source, const std::string& name,
                    const ImageSetOptions& options, const CacheLog& log = nullptr);

/// Of each class so many of a set's images, chosen by the seed, and the others; both in the set's
/// order.
struct ChosenImages {
  ImageSet chosen, others;
};
/// The share of each class, rounded up.
ChosenImages choose_share(const ImageSet& all, double share, uint64_t seed);

/// Images at a path whose labels nobody knows, or asks for: see find_unlabelled(); `name` begins
/// that of the cache file. Errors: those of find_unlabelled() and ImageCache.
ImageSet open_unlabelled_set(const ImageSetOptions& options, const CacheLog& log = nullptr);

}  // namespace heddle
