// Asking a teacher, and keeping its answers.
#include "heddle/train/tasks/images/image_teacher.h"

#include <algorithm>
#include <cmath>

#include "heddle/base/log.h"
#include "heddle/base/names.h"
#include "heddle/base/parallel.h"
#include "heddle/base/profile.h"
#include "heddle/data/image_sources.h"

namespace heddle::train {
namespace {

constexpr const char* kPrefix = "teacher-";
constexpr int64_t kMostBytes = int64_t{16} << 30;

// 0 x 0: it takes images of any size.
ImageSize size_of(const ImageProcessor& p) {
  if (p.do_center_crop) return p.crop_size;
  if (!p.do_resize) return {};
  return p.shortest_edge == 0 ? p.size : ImageSize{p.shortest_edge, p.shortest_edge};
}

std::string key_of(const ImageReader& reader, const std::vector<std::string>& labels) {
  std::string text = reader.model().config().json().dump() + reader.processor.to_json().dump() +
                     reader.loaded.parameters.checksum();
  for (const std::string& label : labels) text += label + "\n";
  return checksum(text);
}

}  // namespace

ImageTeacher::ImageTeacher(const std::string& path, const std::vector<std::string>& labels)
    : reader_(load_image_reader(path)) {
  check(static_cast<bool>(reader_.model().heads().sequence_classes), ErrorKind::data,
        "{}: gives no classes of images, so it cannot teach", path);
  const std::vector<std::string>& known = reader_.model().labels();
  columns_ = places_among(labels, known);
  for (size_t i = 0; i < labels.size(); ++i) {
    check(columns_[i] >= 0, ErrorKind::data,
          "{}: the teacher does not know the class '{}'; its classes are {}{}", path, labels[i],
          fmt::join(std::span(known).first(std::min<size_t>(known.size(), 10)), ", "),
          known.size() > 10 ? ", .." : "");
  }
  key_ = key_of(reader_, labels);
}

void ImageTeacher::keep(const std::string& folder, const std::string& about, int64_t rows) {
  const std::string name = kPrefix + checksum(key_ + about);
  for (const std::string& other : list_directory(folder)) {
    if (other.starts_with(kPrefix) && other != name) remove_path(join_path(folder, other));
  }
  const int64_t bytes = rows * KeptRows::row_bytes(std::ssize(columns_));
  if (bytes > kMostBytes) {
    log_info(
        "what the teacher says of each view would take {:.1f} GiB and is not kept; take fewer by "
        "{} to save time",
        static_cast<double>(bytes) / (1 << 30), field_name("teacher_views"));
    return;
  }
  kept_.emplace(join_path(folder, name), std::ssize(columns_));
}

// The same crop that the student sees, whole: of other teachers' margins nothing is cut off.
Image ImageTeacher::fitted(const Image& image) const {
  const ImageSize size = size_of(reader_.processor);
  if (size.height == 0 || size == image.size()) return image;
  return resize(image, size.height, size.width, reader_.processor.resample);
}

ImageTeacher::Said ImageTeacher::say(std::span<const Image> images, const Mixing& mixing,
                                     const nn::Run& run, const ImageSize* grid) const {
  const ProfilePhase phase("teacher");
  std::vector<Image> fits(images.size());
  parallel_for(std::ssize(images), [&](int64_t i) { fits[i] = fitted(images[i]); });
  ImageBatch batch(fits, reader_.processor);
  std::vector<float> no_targets(images.size());
  mix(mixing, {.pixels = batch.pixels(),
               .channels = Image::kChannels,
               .sizes = batch.sizes(),
               .targets = no_targets,
               .classes = 1});
  nn::Run plain;
  plain.compute = run.compute;
  const NoGrad off;
  const ImageModel& model = reader_.model();
  const nn::ImageRows rows = batch.rows();
  const ModelInput input = rows;
  const Tensor h = model.hidden(input, plain);
  const Tensor all = model.heads().sequence_classes(h, input, plain);
  const std::vector<float> values = all.to_floats();
  check(std::ranges::all_of(values, [](float x) { return std::isfinite(x); }), ErrorKind::data,
        "{}: the teacher gives logits that are not finite", reader_.loaded.path);
  Said said;
  for (int64_t i = 0; i < std::ssize(images); ++i) {
    for (const int32_t c : columns_) said.logits.push_back(values[i * all.size(1) + c]);
  }
  if (grid != nullptr) {
    said.features = grid_features(h, model.facts().tokens, model.grid(fits[0].size()), *grid);
  }
  return said;
}

std::vector<float> ImageTeacher::kept_logits(std::span<const Image> images,
                                             std::span<const int64_t> rows, const nn::Run& run) {
  check(keeps(), ErrorKind::internal, "kept answers of a teacher that keeps none");
  const size_t classes = columns_.size();
  std::vector<float> all(images.size() * classes);
  const auto row = [&](size_t i) { return std::span(all).subspan(i * classes, classes); };
  std::vector<Image> others;
  std::vector<size_t> places;
  for (size_t i = 0; i < images.size(); ++i) {
    if (kept_->read(rows[i], row(i))) continue;
    others.push_back(images[i]);
    places.push_back(i);
  }
  if (others.empty()) return all;
  const std::vector<float> computed = say(others, {}, run).logits;
  for (size_t k = 0; k < places.size(); ++k) {
    std::copy_n(computed.begin() + static_cast<ptrdiff_t>(k * classes), classes,
                row(places[k]).begin());
    kept_->write(rows[places[k]], row(places[k]));
  }
  return all;
}

}  // namespace heddle::train
