// Images are drawn block by block on all threads; what is said of them is collected in order.
#include "heddle/train/batches/scene_files.h"

#include <cerrno>
#include <fstream>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/base/json/json.h"
#include "heddle/base/parallel.h"
#include "heddle/base/progress.h"

namespace heddle::train {
namespace {

constexpr int64_t kBlock = 256;  // images

// Without the waits for the disk that a file of weight has: these can be drawn again.
void write_image(const std::string& path, const Image& image) {
  std::ofstream file(path, std::ios::binary);
  const std::string bytes = encode_png(image);
  if (!file.write(bytes.data(), std::ssize(bytes)).flush()) {
    fail_errno("cannot write", path, errno);
  }
}

std::string file_name(int64_t number) { return fmt::format("{:06}.png", number + 1); }

// each(i) is called on any thread, then after_block(first, end) on one.
template <class F, class G>
void draw_all(const SceneFiles& files, const F& each, const G& after_block) {
  Progress progress("drawing " + files.part);
  for (int64_t begin = 0; begin < files.count; begin += kBlock) {
    const int64_t end = std::min(files.count, begin + kBlock);
    parallel_for(end - begin, [&](int64_t i) { each(begin + i); });
    after_block(begin, end);
    if (progress.is_due()) {
      progress.update(static_cast<double>(end) / static_cast<double>(files.count),
                      counted(end, "image"));
    }
  }
}

// COCO's JSON, a line an image or a box.
class CocoText {
 public:
  explicit CocoText(const std::vector<std::string>& classes) {
    for (size_t i = 0; i < classes.size(); ++i) {
      categories_ += fmt::format("{}{{\"id\": {}, \"name\": {}}}", i > 0 ? ",\n" : "", i + 1,
                                 Json(classes[i]).dump());
    }
  }

  void add(int64_t image, ImageSize size, const std::vector<LabelledBox>& boxes) {
    images_ +=
        fmt::format("{}{{\"id\": {}, \"file_name\": \"{}\", \"height\": {}, \"width\": {}}}",
                    image > 0 ? ",\n" : "", image + 1, file_name(image), size.height, size.width);
    for (const LabelledBox& one : boxes) {
      const Box& b = one.box;
      annotations_ += fmt::format(
          "{}{{\"id\": {}, \"image_id\": {}, \"category_id\": {}, \"bbox\": [{:.2f}, {:.2f}, "
          "{:.2f}, {:.2f}], \"area\": {:.2f}, \"iscrowd\": 0}}",
          boxes_ > 0 ? ",\n" : "", boxes_ + 1, image + 1, one.label + 1, b.x0, b.y0, b.width(),
          b.height(), b.area());
      ++boxes_;
    }
  }

  void write(const std::string& path) const {
    write_file_atomic(path, fmt::format("{{\"categories\": [\n{}\n],\n\"images\": [\n{}\n],\n"
                                        "\"annotations\": [\n{}\n]}}\n",
                                        categories_, images_, annotations_));
  }

 private:
  std::string categories_, images_, annotations_;
  int64_t boxes_ = 0;
};

}  // namespace

void write_scenes(const SceneFiles& files, const std::function<DrawnScene(uint64_t index)>& draw) {
  const std::string folder = join_path(files.folder, files.part);
  make_directories(folder);
  CocoText text(files.classes);
  std::vector<std::vector<LabelledBox>> boxes(kBlock);
  std::vector<ImageSize> sizes(kBlock);
  draw_all(
      files,
      [&](int64_t i) {
        DrawnScene scene = draw(static_cast<uint64_t>(files.first + i));
        write_image(join_path(folder, file_name(i)), scene.image);
        boxes[static_cast<size_t>(i % kBlock)] = std::move(scene.boxes);
        sizes[static_cast<size_t>(i % kBlock)] = scene.image.size();
      },
      [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          text.add(i, sizes[static_cast<size_t>(i % kBlock)],
                   boxes[static_cast<size_t>(i % kBlock)]);
        }
      });
  text.write(join_path(files.folder, files.part + ".json"));
}

void write_drawn_shapes(const SceneFiles& files,
                        const std::function<DrawnShape(uint64_t index)>& draw) {
  const std::string folder = join_path(files.folder, files.part);
  for (const std::string& name : files.classes) make_directories(join_path(folder, name));
  draw_all(
      files,
      [&](int64_t i) {
        const DrawnShape shape = draw(static_cast<uint64_t>(files.first + i));
        const std::string& name = files.classes[static_cast<size_t>(shape.label)];
        write_image(join_path(join_path(folder, name), file_name(i)), shape.image);
      },
      [](int64_t, int64_t) {});
}

void write_captioned_scenes(const SceneFiles& files,
                            const std::function<CaptionedScene(uint64_t index)>& draw) {
  const std::string folder = join_path(files.folder, files.part);
  make_directories(folder);
  std::string text;
  std::vector<std::string> lines(kBlock);
  draw_all(
      files,
      [&](int64_t i) {
        const CaptionedScene drawn = draw(static_cast<uint64_t>(files.first + i));
        write_image(join_path(folder, file_name(i)), drawn.image);
        Json line = Json::object(
            {{"file_name", join_path(files.part, file_name(i))}, {"captions", drawn.captions}});
        const Json scene = to_json(drawn.scene);
        for (const auto& [key, value] : scene.as_object()) line[key] = value;
        lines[static_cast<size_t>(i % kBlock)] = line.dump();
      },
      [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) text += lines[static_cast<size_t>(i % kBlock)] + "\n";
      });
  write_file_atomic(join_path(files.folder, files.part + ".jsonl"), text);
}

}  // namespace heddle::train
