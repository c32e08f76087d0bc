// Sets of images with captions, to train captioners and to test them on.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "heddle/data/captioning/sources.h"
#include "heddle/data/selection.h"

namespace heddle {

struct CaptionSetOptions {
  std::string path = {};       ///< file or folder, see find_captions()
  std::string val_path = {};   ///< that of the held-out images; empty: beside or out of `path`
  double val_share = 0.1;      ///< of the images, where none are held out
  uint64_t seed = 0;           ///< chooses these
  std::string cache_dir = {};  ///< see ImageCacheOptions
  int64_t cache_edge = 0;      ///< the same's `edge`
};

/// Images in the cache with their captions, all or some. Copies share them.
class CaptionSet : public CachedImages {
 public:
  /// At least one.
  std::span<const std::string> captions(int64_t i) const;
  /// What captions of the image can be checked by; may be empty.
  const WrittenScene& scene(int64_t i) const;
  /// 16 hex digits: equal for the same images with the same captions and names, in the same order.
  std::string key() const;

  /// Some of the images, by their numbers in this set, in any order.
  CaptionSet select(const std::vector<int64_t>& images) const;

 private:
  friend CaptionSet cached_captions(const CaptionSource&, const std::string&,
                                    const CaptionSetOptions&, const CacheLog&);
  struct Shared {
    std::vector<std::vector<std::string>> captions = {};  // of each image of the cache
    std::vector<WrittenScene> scenes = {};
    std::string key = {};  // of captions
  };
  CaptionSet(ImageCache cache, std::string root, Shared shared);

  std::shared_ptr<const Shared> shared_;
};

struct CaptionSplit {
  CaptionSet train, val;
};

/// The images of a path and those held out, from the cache (made where it is missing). Held out
/// are those to validate on, else those to test on; where there are none, val_share of the images,
/// chosen by the seed, is. `log` hears how many there are.
/// Errors: those of find_captions() and ImageCache; data for a path without images to train on, or
/// a share that leaves no image to hold out.
CaptionSplit open_caption_split(const CaptionSetOptions& options, const CacheLog& log = nullptr);

/// The images of a part that was found, from the cache, in which `name` is the part's. Of the
/// options the cache's count. Errors: those of ImageCache.
CaptionSet cached_captions(const CaptionSource& source, const std::string& name,
                           const CaptionSetOptions& options, const CacheLog& log = nullptr);

}  // namespace heddle
