// Image files that a command is given.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "heddle/vision/image_processor.h"

namespace heddle::cli {

struct ImageFiles {
  const char* command;
  std::span<const std::string> paths;
  bool skip_bad = false;  ///< one that is no image is warned of, and its line says so
  bool json = false;      ///< by {"image": .., "error": ..}, else by being empty
};

/// Reads the images, some at a time, and calls f with them and their paths; f prints their lines.
/// Errors: those of read_image(), once the images before were answered, unless bad ones are
/// skipped; data if all were.
void for_read_images(const ImageFiles& files,
                     const std::function<void(std::span<const Image> images,
                                              std::span<const std::string> paths)>& f);
/// The same of fitted images.
void for_images(const ImageFiles& files, const ImageProcessor& processor,
                const std::function<void(std::span<const Image> images,
                                         std::span<const std::string> paths)>& f);

/// Labelled images that cannot be read: said, counted, and left out of what is measured.
class LeftOutImages {
 public:
  explicit LeftOutImages(const char* command) : command_(command) {}

  /// Calls f(0) to f(count - 1) in parallel and warns where it throws a data error.
  /// returns: the numbers of the others, rising
  std::vector<size_t> read(int64_t count, const std::function<void(size_t)>& f);
  /// Counts one, with the message on it.
  void note(const std::string& message);
  /// The messages of read() go to `kept` in place of note(); null: no longer.
  void keep(std::vector<std::string>* kept) { kept_ = kept; }

  int64_t count() const { return count_; }
  /// Says how many of `images` were left out, if any. Errors: data if all were.
  void report(int64_t images) const;

 private:
  const char* command_;
  std::vector<std::string>* kept_ = nullptr;
  int64_t count_ = 0;
};

}  // namespace heddle::cli
