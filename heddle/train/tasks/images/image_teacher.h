// A model that tells another one what images show.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "heddle/data/kept_rows.h"
#include "heddle/infer/image_batch.h"
#include "heddle/train/tasks/images/image_imitation.h"
#include "heddle/vision/mixing.h"

namespace heddle::train {

class ImageTeacher {
 public:
  /// Any classifier of images that knows these classes, by their names; what it says of others
  /// does not count. Errors: those of load_image_reader(); data, naming what is missing, if it
  /// gives no classes of images or lacks one.
  ImageTeacher(const std::string& path, const std::vector<std::string>& labels);

  /// Differs where weights, config, preprocessing or classes do.
  const std::string& key() const { return key_; }
  /// From now on what it says is kept in a file of the folder, in as many rows as logits() is given
  /// numbers of. about: all that the images depend on, and the machine. Nothing is kept where that
  /// would take more than 16 GiB, which is said. Errors: system.
  void keep(const std::string& folder, const std::string& about, int64_t rows);
  bool keeps() const { return kept_.has_value(); }

  /// Width of the features below.
  int64_t width() const { return reader_.model().width(); }
  /// Logits of those classes: [images, classes]; and its last states laid over a grid, if there is
  /// one: [images * rows of the grid, width()].
  struct Said {
    std::vector<float> logits;
    Tensor features = {};
  };
  /// Of augmented images, resized to the teacher's own size and normalised its own way; `mixing` is
  /// done to them as to the student's. Errors: data for logits that are not finite.
  Said say(std::span<const Image> images, const Mixing& mixing, const nn::Run& run,
           const ImageSize* grid = nullptr) const;
  /// The logits for images that are not mixed; rows: where each is kept. The same bits whether or
  /// not they were. Errors: those of say(); internal if nothing is kept.
  std::vector<float> kept_logits(std::span<const Image> images, std::span<const int64_t> rows,
                                 const nn::Run& run);

 private:
  Image fitted(const Image& image) const;

  ImageReader reader_;
  std::vector<int32_t> columns_;  // of the student's classes
  std::string key_;
  std::optional<KeptRows> kept_;
};

}  // namespace heddle::train
