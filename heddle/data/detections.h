// Sets of images with boxes around their objects, to train detectors and to test them on.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "heddle/data/detection/sources.h"
#include "heddle/data/selection.h"

namespace heddle {

struct DetectionSetOptions {
  std::string path = {};       ///< file or folder, see find_detections()
  std::string val_path = {};   ///< that of the held-out images; empty: beside or out of `path`
  double val_share = 0.1;      ///< of the images, where none are held out
  uint64_t seed = 0;           ///< chooses these
  std::string cache_dir = {};  ///< see ImageCacheOptions
  int64_t cache_edge = 0;      ///< the same's `edge`
  /// Names of the classes where the files have numbers alone (boxes.tsv), or the same.
  std::vector<std::string> class_names = {};
};

/// Makes the boxes of a set those that an image can show: clipped to it; without those of no area
/// and those outside. It remembers what it changed. For training and its validation: `heddle eval`
/// judges by all boxes as their file has them, as pycocotools does.
class BoxCleaner {
 public:
  /// The boxes of an image whose file has the size `file`, in pixels of `shown`, which it is
  /// resized to; areas become smaller with it.
  std::vector<LabelledBox> clean(const DetectionSource& source, size_t entry, ImageSize file,
                                 ImageSize shown);
  /// Remembers an image whose file has not the size that the source says; clean() does so too.
  void compare_size(const DetectionSource& source, size_t entry, ImageSize file);
  /// Counts all that in warnings, and names the first ones. `file` is the source's.
  void warn(const std::string& file) const;

 private:
  struct Faults {
    int64_t count = 0;
    std::vector<std::string> first = {};

    void add(std::string what);
    std::string text() const;
  };
  Faults flat_, outside_, clipped_, resized_;
};

/// Images in the cache with their boxes, all or some. Copies share them.
class DetectionSet : public CachedImages {
 public:
  /// Of the image's objects, in pixels of image(i), inside it, none of them flat; their `area` as
  /// BoxCleaner says. There may be none.
  std::span<const LabelledBox> boxes(int64_t i) const;
  /// COCO's id of the image; elsewhere its number in the files' order, from 1.
  int64_t id(int64_t i) const;
  const std::vector<std::string>& classes() const { return shared_->classes; }
  /// COCO's category id of each class; elsewhere its number, from 1.
  const std::vector<int64_t>& category_ids() const { return shared_->category_ids; }
  /// The most boxes that an image has, without crowds.
  int64_t most_boxes() const;
  /// 16 hex digits: equal for the same images with the same boxes, classes and names, in the same
  /// order.
  std::string key() const;

  /// Some of the images, by their numbers in this set, in any order.
  DetectionSet select(const std::vector<int64_t>& images) const;

 private:
  friend DetectionSet cached_detections(const DetectionSource&, const std::string&,
                                        const DetectionSetOptions&, const CacheLog&);
  struct Shared {
    std::vector<std::string> classes;
    std::vector<int64_t> category_ids;
    std::vector<std::vector<LabelledBox>> boxes = {};  // of each image of the cache
    std::vector<int64_t> ids = {};
    std::string key = {};  // of boxes and classes
  };
  DetectionSet(ImageCache cache, std::string root, Shared shared);

  std::shared_ptr<const Shared> shared_;
};

struct DetectionSplit {
  DetectionSet train, val;
};

/// The images of a path and those held out, from the cache (made where it is missing), with the
/// classes of the training images. Where none are held out, val_share of the images, chosen by the
/// seed, is. Boxes are cleaned with a warning, see BoxCleaner. `log` hears how many there are.
/// Errors: those of find_detections(), relabel() and ImageCache; usage for class_names of files
/// that all name theirs; data for a path without images to train on, no box in all of them, or a
/// share that leaves no image to hold out.
DetectionSplit open_detection_split(const DetectionSetOptions& options,
                                    const CacheLog& log = nullptr);

/// The images of a part that was found, from the cache, in which `name` is the part's; boxes are
/// cleaned with a warning. Of the options the cache's count. Errors: those of ImageCache.
DetectionSet cached_detections(const DetectionSource& source, const std::string& name,
                               const DetectionSetOptions& options, const CacheLog& log = nullptr);

}  // namespace heddle
