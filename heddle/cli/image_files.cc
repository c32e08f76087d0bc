// Reading image files in blocks; the lines of bad ones come in their place.
#include "heddle/cli/image_files.h"

#include <algorithm>
#include <vector>

#include "heddle/base/error.h"
#include "heddle/base/json/json.h"
#include "heddle/base/parallel.h"
#include "heddle/base/work_notes.h"
#include "heddle/cli/shared_command.h"
#include "heddle/dist/share_out.h"
#include "heddle/vision/orientation.h"

namespace heddle::cli {

namespace {

using ReadImage = std::function<Image(const std::string&)>;

Image read_for(const ImagesFor& to, const std::string& path) {
  Image image = read_upright_image(path);
  check_takes(to.model, to.processor, image.size(), path);
  return image;
}

constexpr size_t kAtOnce = 32;

void skip_image(const ImageFiles& files, const std::string& path, const Error& error,
                Skipped& skipped, Results out) {
  skipped.note(error.what());
  const Json line = Json::object({{"image", path}, {"error", error.what()}});
  out.print(files.json ? line.dump() : "");
}

// Of these, which follow each other from the image of that number on.
void answer_some(const ImageFiles& files, std::span<const std::string> some, int64_t first,
                 const ReadImage& read, const ImageAnswers& answer, Skipped& skipped, Results out) {
  constexpr int64_t kPixelsAtOnce = 16'000'000;  // 48 MB, but for an image that has more
  std::vector<Image> images;
  size_t next = 0;
  int64_t pixels = 0;
  const auto flush = [&] {
    const size_t begin = next - images.size();
    if (!images.empty()) {
      answer({images, some.subspan(begin, images.size()), first + static_cast<int64_t>(begin)},
             out);
      note_work();
    }
    images.clear(), pixels = 0;
  };
  for (; next < some.size(); ++next) {
    Image image;
    try {
      image = read(some[next]);
    } catch (const Error& e) {
      flush();
      if (!files.skip_bad || e.kind() != ErrorKind::data) throw;
      skip_image(files, some[next], e, skipped, out);
      continue;
    }
    const int64_t own = image.height * image.width;
    if (pixels + own > kPixelsAtOnce || images.size() == kAtOnce) flush();
    images.push_back(std::move(image)), pixels += own;
  }
  flush();
}

// Of each portion a rank answers a part.
void for_each_image(const ImageFiles& files, dist::Group& group, const ReadImage& read,
                    const ImageAnswers& answer) {
  Skipped skipped(files.command, {.one = "image"});
  const size_t each = group.is_alone() ? files.paths.size() : kAtOnce;
  const size_t portion = each * static_cast<size_t>(group.ranks());
  for (size_t begin = 0; begin < files.paths.size(); begin += portion) {
    const size_t all = files.paths.size();
    const size_t own = std::min(all, begin + each * static_cast<size_t>(group.rank()));
    const auto mine = files.paths.subspan(own, std::min(each, all - own));
    write_by_ranks(group, skipped, [&](Results out, Skipped& kept) {
      answer_some(files, mine, static_cast<int64_t>(own), read, answer, kept, out);
    });
  }
  dist::do_alike(group, [&] { skipped.report(std::ssize(files.paths)); });
}

}  // namespace

void for_read_images(const ImageFiles& files, dist::Group& group, const ImagesFor& to,
                     const ImageAnswers& answer) {
  const auto read = [&](const std::string& path) { return read_for(to, path); };
  for_each_image(files, group, read, answer);
}

void for_images(const ImageFiles& files, dist::Group& group, const ImagesFor& to,
                const ImageAnswers& answer) {
  const auto read = [&](const std::string& path) { return to.processor.fit(read_for(to, path)); };
  for_each_image(files, group, read, answer);
}

ReadableImages read_in_parallel(int64_t count, const std::function<void(size_t)>& f) {
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
  ReadableImages all;
  for (size_t i = 0; i < errors.size(); ++i) {
    if (errors[i].empty()) {
      all.read.push_back(i);
    } else {
      all.left_out.push_back("left out: " + errors[i]);
    }
  }
  return all;
}

}  // namespace heddle::cli
