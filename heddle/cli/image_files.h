// Image files that a command is given.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "heddle/cli/lines.h"
#include "heddle/dist/group.h"
#include "heddle/infer/image_batch.h"

namespace heddle::cli {

struct ImageFiles {
  const char* command;
  std::span<const std::string> paths;
  bool skip_bad = false;  ///< one that is no image is warned of, and its line says so
  bool json = false;      ///< by {"image": .., "error": ..}, else by being empty
};

/// Some of them, which follow each other.
struct ReadImages {
  std::span<const Image> images;
  std::span<const std::string> paths;
  int64_t first;  ///< the number of the first one among all, from 0
};
/// Prints their lines.
using ImageAnswers = std::function<void(const ReadImages& read, Results out)>;

/// What the images are read for.
struct ImagesFor {
  const Model& model;
  const ImageProcessor& processor;
};

/// Reads the images, some at a time, and has them answered. All ranks of the group call it, and
/// share them.
/// Errors: those of read_image() and check_takes(), once the images before were answered, unless
/// bad ones are skipped; data if all were.
void for_read_images(const ImageFiles& files, dist::Group& group, const ImagesFor& to,
                     const ImageAnswers& answer);
/// The same of fitted images.
void for_images(const ImageFiles& files, dist::Group& group, const ImagesFor& to,
                const ImageAnswers& answer);

/// What of labelled images cannot be read is left out of what is measured.
inline constexpr Skipped::Words kLeftOutImages = {"image", "read", "left out"};
/// Which images could be read, by their numbers, rising, and the messages on the others.
struct ReadableImages {
  std::vector<size_t> read;
  std::vector<std::string> left_out;
};
/// Calls f(0) to f(count - 1) in parallel, which may throw data errors.
ReadableImages read_in_parallel(int64_t count, const std::function<void(size_t)>& f);

}  // namespace heddle::cli
