// Processors of models that are begun from, and of those that are saved.
#include "heddle/train/tasks/images/pixel_task.h"

#include "heddle/base/files/files.h"
#include "heddle/models/image_model.h"
#include "heddle/vision/image.h"

namespace heddle::train {

void check_channels(int64_t channels) {
  check(channels < 0 || channels == Image::kChannels, ErrorKind::usage,
        "train: images are read in {0} channels, and the model takes {1}; give `num_channels` {0}",
        Image::kChannels, channels);
}

PixelTask::PixelTask(const TrainConfig& config, const RunPaths& paths, const std::string& run)
    : ModelTask(config, paths, run) {
  if (paths.from.empty()) return;
  config_.stack.hub() = config_of_model(paths.from).hub();
  processor_ = ImageProcessor::of_folder(find_model_dir(paths.from));
}

void PixelTask::begin_image_model() {
  begin_model();
  check_channels(model().need<ImageModel>("train").facts().channels);
}

std::string PixelTask::preparation_key() const {
  const std::string prepared = processor_.to_json().dump();
  return " as " + checksum(std::as_bytes(std::span(prepared)));
}

void PixelTask::save_model(const std::string& folder) const {
  make_directories(folder);
  write_file_atomic(join_path(folder, kPreprocessorName), processor_.to_json().dump(2) + "\n");
  ModelTask::save_model(folder);
}

}  // namespace heddle::train
