// What the tasks over images have in common: how images are prepared, which a model's folder says.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "heddle/data/image_cache.h"
#include "heddle/train/tasks/model_task.h"
#include "heddle/vision/image_processor.h"

namespace heddle::train {

/// What `cache_edge` does in tasks whose images may have any size.
inline constexpr const char* kCacheEdgeAbout =
    "larger images are kept with a shorter edge of so many pixels; where nothing else says a size, "
    "all images are then resized to that, by the model that is saved too; 0: as they are";

/// Errors: usage for a model of other channels than images are read in. channels: below 0 if the
/// model does not say.
void check_channels(int64_t channels);

class PixelTask : public ModelTask {
 public:
  /// The weights last: a folder that has them has all.
  void save_model(const std::string& folder) const override;

 protected:
  /// Where a run begins from a model, its classes, head and processor are those of its folder.
  PixelTask(const TrainConfig& config, const RunPaths& paths, const std::string& run);

  /// Images are squeezed to a square.
  void set_edge(int64_t edge) { set_size({edge, edge}); }
  /// Images are squeezed to a size.
  void set_size(ImageSize size);
  /// Where no size is set, images are resized as the cache has shrunk larger ones; edge 0: it has
  /// not.
  void set_cache_edge(int64_t edge);
  /// What images are normalised by: mean and deviation of each channel over all pixels of so many,
  /// of 0 to 1, in fixed order.
  void measure(int64_t images, const std::function<ImageView(int64_t)>& image);
  /// begin_model() of one that reads images. Errors: its, and those of check_channels().
  void begin_image_model();
  /// The numbers of those of so many images that the model takes; nothing: all of them. The others
  /// are named in a warning. Errors: data if it takes none.
  std::optional<std::vector<int64_t>> taken(int64_t images,
                                            const std::function<ImageSize(int64_t)>& size,
                                            const std::function<std::string(int64_t)>& path) const;
  /// What keys of images end in: differs where the processor does.
  std::string preparation_key() const;

  ImageProcessor processor_;
};

}  // namespace heddle::train
