// Reading image files in blocks; the lines of bad ones come in their place.
#include "heddle/cli/image_files.h"

#include <algorithm>
#include <vector>

#include "heddle/base/error.h"
#include "heddle/base/json/json.h"
#include "heddle/base/log.h"
#include "heddle/cli/lines.h"

namespace heddle::cli {

namespace {

void for_each_image(const ImageFiles& files, const std::function<Image(const std::string&)>& read,
                    const std::function<void(std::span<const Image> images,
                                             std::span<const std::string> paths)>& f) {
  constexpr size_t kAtOnce = 32;
  std::vector<Image> images;
  std::vector<std::string> paths;
  const auto flush = [&] {
    if (!images.empty()) f(images, paths);
    images.clear(), paths.clear();
  };
  for (const std::string& path : files.paths) {
    try {
      images.push_back(read(path));
      paths.push_back(path);
    } catch (const Error& e) {
      if (!files.skip_bad) throw;
      flush();
      log_warning("{}", e.what());
      print_result(files.json ? Json::object({{"error", e.what()}}).dump() : "");
    }
    if (images.size() == kAtOnce) flush();
  }
  flush();
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

}  // namespace heddle::cli
