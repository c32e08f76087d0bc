// Reading image files in blocks; the lines of bad ones come in their place.
#include "heddle/cli/image_files.h"

#include <algorithm>
#include <vector>

#include "heddle/base/error.h"
#include "heddle/base/json/json.h"
#include "heddle/base/log.h"
#include "heddle/base/parallel.h"
#include "heddle/base/progress.h"
#include "heddle/cli/lines.h"

namespace heddle::cli {

namespace {

constexpr int64_t kBadImagesSaid = 5;

void skip_image(const ImageFiles& files, const std::string& path, const Error& error,
                int64_t count) {
  if (count <= kBadImagesSaid) log_warning("{}: {}", files.command, error.what());
  const Json line = Json::object({{"image", path}, {"error", error.what()}});
  print_result(files.json ? line.dump() : "");
}

void report_skipped(const ImageFiles& files, int64_t count) {
  if (count == 0) return;
  const auto all = std::ssize(files.paths);
  check(count < all, ErrorKind::data, "{}: none of the {} could be answered", files.command,
        counted(all, "image"));
  log_warning("{}: {} of {} {} skipped (--skip-bad)", files.command, count, counted(all, "image"),
              count == 1 ? "was" : "were");
}

void for_each_image(const ImageFiles& files, const std::function<Image(const std::string&)>& read,
                    const std::function<void(std::span<const Image> images,
                                             std::span<const std::string> paths)>& f) {
  constexpr size_t kAtOnce = 32;
  constexpr int64_t kPixelsAtOnce = 16'000'000;  // 48 MB, but for an image that has more
  std::vector<Image> images;
  std::vector<std::string> paths;
  int64_t pixels = 0;
  int64_t bad = 0;
  const auto flush = [&] {
    if (!images.empty()) f(images, paths);
    images.clear(), paths.clear(), pixels = 0;
  };
  for (const std::string& path : files.paths) {
    Image image;
    try {
      image = read(path);
    } catch (const Error& e) {
      flush();
      if (!files.skip_bad || e.kind() != ErrorKind::data) throw;
      skip_image(files, path, e, ++bad);
      continue;
    }
    const int64_t own = image.height * image.width;
    if (pixels + own > kPixelsAtOnce) flush();
    images.push_back(std::move(image)), paths.push_back(path), pixels += own;
    if (images.size() == kAtOnce) flush();
  }
  flush();
  report_skipped(files, bad);
}

}  // namespace

void for_read_images(const ImageFiles& files,
                     const std::function<void(std::span<const Image> images,
                                              std::span<const std::string> paths)>& f) {
  for_each_image(files, read_image, f);
}

void for_images(const ImageFiles& files, const ImageProcessor& processor,
                const std::function<void(std::span<const Image> images,
                                         std::span<const std::string> paths)>& f) {
  for_each_image(
      files, [&](const std::string& path) { return processor.fit(read_image(path)); }, f);
}

std::vector<size_t> LeftOutImages::read(int64_t count, const std::function<void(size_t)>& f) {
  std::vector<std::string> errors(static_cast<size_t>(count));
  parallel_for(count, [&](int64_t i) {
    const auto at = static_cast<size_t>(i);
    try {
      f(at);
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::data) throw;
      errors[at] = e.what();
    }
  });
  std::vector<size_t> read;
  for (size_t i = 0; i < errors.size(); ++i) {
    if (errors[i].empty()) {
      read.push_back(i);
    } else if (kept_ != nullptr) {
      kept_->push_back(errors[i]);
    } else {
      note(errors[i]);
    }
  }
  return read;
}

void LeftOutImages::note(const std::string& message) {
  if (++count_ <= kBadImagesSaid) log_warning("{}: left out: {}", command_, message);
}

void LeftOutImages::report(int64_t images) const {
  if (count_ == 0) return;
  check(count_ < images, ErrorKind::data, "{}: none of the {} could be read", command_,
        counted(images, "image"));
  log_warning("{}: {} of {} {} left out", command_, count_, counted(images, "image"),
              count_ == 1 ? "was" : "were");
}

}  // namespace heddle::cli
