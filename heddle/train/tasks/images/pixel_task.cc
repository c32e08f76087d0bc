// Processors of models that are begun from, and of those that are saved.
#include "heddle/train/tasks/images/pixel_task.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "heddle/base/files/files.h"
#include "heddle/base/log.h"
#include "heddle/base/parallel.h"
#include "heddle/base/progress.h"
#include "heddle/infer/image_batch.h"
#include "heddle/models/captioner.h"
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

void PixelTask::set_size(ImageSize size) {
  processor_.do_resize = true, processor_.size = size;
  processor_.shortest_edge = processor_.longest_edge = 0;
  processor_.do_center_crop = false;
}

// Bilinear and with the edges that ImageCache makes: of its images these are the same pixels.
void PixelTask::set_cache_edge(int64_t edge) {
  if (edge == 0 || processor_.do_resize) return;
  processor_.do_resize = true, processor_.shortest_edge = edge;
  processor_.resample = Resample::bilinear;
}

std::optional<std::vector<int64_t>> PixelTask::taken(
    int64_t images, const std::function<ImageSize(int64_t)>& size,
    const std::function<std::string(int64_t)>& path) const {
  constexpr size_t kMostNamed = 5;
  std::vector<int64_t> numbers;
  std::vector<std::string> faults;
  for (int64_t i = 0; i < images; ++i) {
    try {
      check_takes(model(), processor_, size(i), path(i));
      numbers.push_back(i);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::data) throw;
      if (faults.size() < kMostNamed) faults.emplace_back(error.what());
    }
  }
  if (faults.empty()) return std::nullopt;
  check(!numbers.empty(), ErrorKind::data, "the model takes none of {}; the first: {}",
        counted(images, "image"), faults.front());
  const int64_t left_out = images - std::ssize(numbers), more = left_out - std::ssize(faults);
  log_warning("left out: {} that the model does not take: {}{}", counted(left_out, "image"),
              fmt::join(faults, "; "), more > 0 ? fmt::format("; and {} more", more) : "");
  return numbers;
}

void PixelTask::measure(int64_t images, const std::function<ImageView(int64_t)>& image) {
  constexpr int64_t kParts = 64;
  struct Sums {
    std::array<double, 3> sum = {}, squares = {};
    int64_t pixels = 0;
  };
  std::vector<Sums> parts(kParts);
  parallel_for(kParts, [&](int64_t part) {
    Sums& s = parts[part];
    for (int64_t i = part; i < images; i += kParts) {
      const ImageView view = image(i);
      const int64_t pixels = view.size.height * view.size.width;
      s.pixels += pixels;
      for (int64_t p = 0; p < pixels; ++p) {
        for (int64_t c = 0; c < 3; ++c) {
          const double level = view.pixels[p * view.channels + (view.channels == 3 ? c : 0)];
          s.sum[c] += level, s.squares[c] += level * level;
        }
      }
    }
  });
  Sums all;
  for (const Sums& s : parts) {
    all.pixels += s.pixels;
    for (size_t c = 0; c < 3; ++c) all.sum[c] += s.sum[c], all.squares[c] += s.squares[c];
  }
  processor_.do_normalize = true;
  const auto n = static_cast<double>(all.pixels);
  for (size_t c = 0; c < 3; ++c) {
    const double mean = all.sum[c] / n;
    processor_.image_mean[c] = mean / 255;
    processor_.image_std[c] = std::max(1.0, std::sqrt(all.squares[c] / n - mean * mean)) / 255;
  }
}

void PixelTask::begin_image_model() {
  begin_model();
  const auto* const captioner = model().as<Captioner>();
  check_channels(
      (captioner ? captioner->images() : model().need<ImageModel>("train").facts()).channels);
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
