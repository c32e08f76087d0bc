// Decoded images in a memory-mapped file: decoded once, then a set larger than memory can be
// trained on.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/data/cache_file.h"
#include "heddle/data/image_sources.h"

namespace heddle {

/// An image in the cache.
struct ImageView {
  const uint8_t* pixels = nullptr;  ///< [height, width, channels]
  ImageSize size;
  int64_t channels = 0;  ///< 3, or 1 of a grey set

  /// A copy; grey is repeated.
  Image rgb() const;
};

struct ImageCacheOptions {
  std::string folder;  ///< made if it is missing; RUN/cache by custom
  std::string name;    ///< begins the cache file's name: "train"
  int64_t edge = 0;    ///< longest that the shorter edge of an image may be; 0: no bound
};

/// The images of a source but those that cannot be read. Copies share the mapped file.
class ImageCache {
 public:
  /// Opens the cache of a source, or makes it: images are decoded on all threads, block by block,
  /// and shrunk (bilinear) to `edge`; the same bytes come out for any number of threads. The file
  /// is FOLDER/NAME-KEY.images, where KEY is a checksum of the source's content, its labels and
  /// the edge. It is written atomically; one that was cut short or altered is made anew (pixels of
  /// up to 4 GiB are compared with their checksum, of larger files only all else). `log` hears of
  /// each of these. Files that are no images, or damaged, are left out: a warning counts them and
  /// names the first ones.
  /// Errors: data if no image can be read; system if the cache cannot be written.
  static ImageCache open_or_build(const ImageSource& source, const ImageCacheOptions& options,
                                  const CacheLog& log = nullptr);

  int64_t size() const;
  int64_t channels() const;
  ImageView image(int64_t i) const;
  ImageSize original_size(int64_t i) const;  ///< before it was shrunk
  int32_t label(int64_t i) const;
  std::string_view name(int64_t i) const;  ///< below the source's root
  const std::vector<std::string>& labels() const;
  /// 16 hex digits: equal for equal pixels, sizes, labels and names.
  const std::string& key() const;
  /// The cache file.
  const std::string& path() const;

 private:
  struct Impl;
  explicit ImageCache(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

/// Removes what a cache file has replaced: those beside it of the same name and another key. Files
/// that are no whole caches stay, and so do all in a folder that is a link.
void remove_other_caches(const std::string& path);

/// The number in the source of each image of its cache: those that cannot be read are not there.
/// Errors: data, naming `file`, which lists the images, if the cache has others.
std::vector<size_t> cached_entries(const ImageSource& source, const ImageCache& cache,
                                   const std::string& file);

}  // namespace heddle
