// What kind of set of boxes lies at a path.
#include "heddle/data/detection/sources.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"

namespace heddle {
namespace {

// The part that a name speaks of: 0 train, 1 val, 2 test; -1: none.
int part_in(const std::string& name) {
  if (name.find("train") != name.npos) return 0;
  if (name.find("val") != name.npos) return 1;
  return name.find("test") != name.npos ? 2 : -1;
}

// Files of JSON in a folder, below `path`.
std::vector<std::string> json_files(const std::string& path, const std::string& folder) {
  std::vector<std::string> names;
  if (!is_directory(join_path(path, folder))) return names;
  for (const std::string& name : list_directory(join_path(path, folder))) {
    if (name.ends_with(".json") && !name.starts_with('.')) names.push_back(join_path(folder, name));
  }
  return names;
}

bool is_of_instances(const std::string& name) { return name.find("instances") != name.npos; }

// The one file of a part: that of "instances" where others are beside it.
std::string chosen(std::vector<std::string> names, const std::string& path) {
  if (names.size() > 1 && std::ranges::any_of(names, is_of_instances)) {
    std::erase_if(names, [](const std::string& name) { return !is_of_instances(name); });
  }
  check(names.size() == 1, ErrorKind::data,
        "{}: it is not clear which of these files counts: {}; give the path of one of them", path,
        fmt::join(names, ", "));
  return join_path(path, names.front());
}

std::optional<DetectionSources> find_coco(const std::string& path) {
  std::array<std::vector<std::string>, 3> parts;
  std::vector<std::string> others;
  for (const char* folder : {"", "annotations", "train", "val", "valid", "validation", "test"}) {
    for (const std::string& name : json_files(path, folder)) {
      const int part = part_in(name);
      (part < 0 ? others : parts[static_cast<size_t>(part)]).push_back(name);
    }
  }
  if (parts[0].empty()) parts[0] = others;
  DetectionSources found;
  const auto read = [&](size_t part, const char* name) -> UnreadPart<DetectionSource> {
    if (parts[part].empty()) return {};
    return [names = parts[part], path, name] { return read_coco(chosen(names, path), name); };
  };
  found.train = read(0, "train");
  found.val = read(1, "val");
  found.test = read(2, "test");
  if (!found.train && !found.val && !found.test) return std::nullopt;
  return found;
}

DetectionSource finished(DetectionSource source) {
  source.images.labels = {"image"};
  if (source.images.decode) return source;
  source.images.decode = [](size_t, const std::string& path) { return decode_image_file(path); };
  return source;
}

DetectionSources read_any(const std::string& path, const std::vector<std::string>& class_names) {
  check(path_exists(path), ErrorKind::data, "{}: there is no such file or folder", path);
  if (!is_directory(path)) {
    check(path.ends_with(".json"), ErrorKind::data,
          "{}: is no set of boxes by its name; a .json file of COCO's is, or a folder", path);
    return {[path] { return read_coco(path, ""); }, {}, {}};
  }
  if (is_box_table(path)) return read_box_table(path, class_names);
  if (is_voc(path)) return read_voc(path);
  if (auto found = find_coco(path)) return std::move(*found);
  fail(ErrorKind::data,
       "{}: no images with boxes that heddle knows. There may be JSON files of COCO's (also in "
       "annotations/), Annotations/*.xml of VOC's, or boxes.tsv and images.tsv",
       path);
}

}  // namespace

DetectionSources find_detections(const std::string& path,
                                 const std::vector<std::string>& class_names) {
  DetectionSources found = read_any(path, class_names);
  for (auto* part : {&found.train, &found.val, &found.test}) {
    if (*part) *part = [read = std::move(*part)] { return finished(read()); };
  }
  return found;
}

void relabel(DetectionSource& source, const std::vector<std::string>& classes) {
  if (source.classes == classes) return;
  const std::vector<int32_t> as = places_among(source.classes, classes);
  std::vector<int64_t> ids(classes.size(), 0);
  for (size_t i = 0; i < as.size(); ++i) {
    if (as[i] >= 0) ids[static_cast<size_t>(as[i])] = source.category_ids[i];
  }
  for (size_t i = 0; i < source.boxes.size(); ++i) {
    for (LabelledBox& box : source.boxes[i]) {
      const auto label = static_cast<size_t>(box.label);
      check(as[label] >= 0, ErrorKind::data,
            "{}: a box is of class '{}', which is not among the {} known ones",
            source.images.path(i), source.classes[label], classes.size());
      box.label = as[label];
    }
  }
  source.classes = classes;
  source.category_ids = std::move(ids);
}

void relabel_for_model(DetectionSource& source, const std::vector<std::string>& labels) {
  if (source.is_numbered) {
    check(source.classes.size() <= labels.size(), ErrorKind::data,
          "{}: its boxes are of {} classes from 0; the model has {}", source.file,
          source.classes.size(), labels.size());
    std::ranges::copy_n(labels.begin(), std::ssize(source.classes), source.classes.begin());
    source.is_numbered = false;
  }
  relabel(source, labels);
}

double number_of(const std::string& text, const std::string& where) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, fault] = std::from_chars(text.data(), end, value);
  check(fault == std::errc() && stop == end, ErrorKind::data, "{}: '{}' is no number", where, text);
  return value;
}

void check_corners(const Box& box, const std::string& where) {
  for (const double v : {box.x0, box.y0, box.x1, box.y1}) {
    check(std::abs(v) <= kFarthestCorner, ErrorKind::data,
          "{}: a corner of the box lies at {}; within {} pixels is needed", where, v,
          kFarthestCorner);
  }
}

void add_image_file(DetectionSource& source, const std::string& name, int64_t id) {
  source.images.add_file(name, 0);
  source.boxes.emplace_back();
  source.ids.push_back(id);
  source.sizes.emplace_back();
}

}  // namespace heddle
