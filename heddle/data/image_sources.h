// Labelled images in the files that people have, before they are decoded.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "heddle/vision/image.h"

namespace heddle {

/// An image out of a file: 8 bits a channel.
struct DecodedImage {
  ImageSize size;
  std::vector<uint8_t> pixels;  ///< [height, width, channels]
};

/// Images of one part: those to train on, or those held out.
struct ImageSource {
  struct Entry {
    std::string name;  ///< below the root: "cat/7.jpg", "train.jpack: image 7"
    int32_t label = 0;
    int64_t bytes = 0;  ///< compressed
  };

  std::string root;                 ///< folder
  std::vector<std::string> labels;  ///< names of the classes
  std::vector<Entry> entries;
  int64_t channels = Image::kChannels;
  std::string path(size_t i) const;
  /// Adds the file of an image below the root, which decode_image_file() is to decode. One that
  /// cannot be looked at counts as empty; what is wrong is said when it is decoded.
  void add_file(const std::string& name, int32_t label);
  /// The image of entry i; path(i) opens messages. Any thread may call it. Errors: data.
  std::function<DecodedImage(size_t i, const std::string& path)> decode;
  std::string content;  ///< differs wherever another cache is needed
};

/// By its ending that of an image, which may be of a format that cannot be read.
bool is_image_name(const std::string& name);

/// A JPEG or PNG file. Errors: those of read_image().
DecodedImage decode_image_file(const std::string& path);

/// A part of a set, read when it is called: what is missing of a part does not matter to who asks
/// for another (COCO's archives of annotations name images of all parts). Empty: it is not there.
template <class Source>
using UnreadPart = std::function<Source()>;

struct ImageSources {
  UnreadPart<ImageSource> train, val, test;
};

/// What is at a path. A file: .jpack (JPEG files without their common beginning, which is
/// jpeg_header.bin beside it, as ../shared/data/cifar10/README.md has them), IDX (its name has
/// "images"; that with "labels" lies beside it; gzip or not), .bin (CIFAR-10 or CIFAR-100, of which
/// the fine labels count). A folder: of such files, those to train on with "train" or "data_batch"
/// in their name, those to validate on with "val" or "dev", those to test on with "test" or "t10k"
/// (the first that is there); of folders train/, val/ (valid, validation, dev), test/ (t10k) with a
/// folder of JPEG and PNG files a class; or of folders a class, which are train's. Names of classes
/// are those of the folders, in order; lines of classes.txt, batches.meta.txt,
/// fine_label_names.txt; or numbers. Of a path without parts only `train` is there. Images beside
/// the folders of parts or classes, and in other folders beside those of parts, are passed over
/// with a warning.
/// Errors: data, naming the file, for a path without images, or folders that may be parts or
/// classes (train/ with folders in it, beside folders that are no parts); of a part that is read,
/// for a class without image files in training, a file of a wrong size or with a label that has no
/// name.
ImageSources find_images(const std::string& path);

/// All images at a path, whatever says what they show: those of find_images()' files to train on,
/// or all JPEG and PNG files in a folder and those below it, of a folder of parts those of train/
/// alone. Each has label 0 of one class without a name. Errors: data, naming the path, if there is
/// none; those of find_images().
ImageSource find_unlabelled(const std::string& path);

/// Where each name stands among others; -1: it does not. Of equal ones see distinct_names().
std::vector<int32_t> places_among(const std::vector<std::string>& names,
                                  const std::vector<std::string>& others);

/// The labels of `source` become those of `labels` that have the same name.
/// Errors: data for a label in use that is not among them.
void relabel(ImageSource& source, const std::vector<std::string>& labels);

}  // namespace heddle
