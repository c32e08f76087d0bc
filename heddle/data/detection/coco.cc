// COCO's instances in JSON: images, annotations, categories.
// Source: Lin et al. 2014, "Microsoft COCO", and cocodataset.org, data format.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/base/json/json.h"
#include "heddle/data/detection/sources.h"

namespace heddle {
namespace {

using Numbers = std::map<int64_t, size_t>;  // of ids

void add_id(Numbers& ids, int64_t id, const std::string& where) {
  check(ids.emplace(id, ids.size()).second, ErrorKind::data,
        "{}: the id {} stands there twice, and must be one image's, annotation's or category's",
        where, id);
}

// Sorted by their ids, whatever order the file has.
void read_categories(const Json& json, DetectionSource& source, Numbers& numbers) {
  std::map<int64_t, std::string> names;
  std::set<std::string> seen;
  const std::string where = source.file + ": categories";
  for (const Json& category : json.at("categories", source.file).as_array(where)) {
    const int64_t id = category.get_int("id", where);
    const std::string& name = category.get_string("name", where);
    check(names.emplace(id, name).second, ErrorKind::data, "{}: the id {} stands there twice",
          where, id);
    check(seen.insert(name).second, ErrorKind::data, "{}: two have the name '{}'", where, name);
  }
  for (const auto& [id, name] : names) {
    numbers.emplace(id, numbers.size());
    source.category_ids.push_back(id);
    source.classes.push_back(name);
  }
}

struct CocoImage {
  int64_t id;
  std::string file_name;
  ImageSize size;
};

// Errors: data for a number below 0 or beyond what an image can have.
int64_t edge_of(const Json& image, const char* key, const std::string& where) {
  const Json* edge = image.find(key);
  if (edge == nullptr || edge->is_null()) return 0;
  const int64_t pixels = edge->as_int(where);
  check(pixels >= 0 && pixels <= kMostPixels, ErrorKind::data, "{}: the image's {} is {} pixels",
        where, key, pixels);
  return pixels;
}

std::vector<CocoImage> read_images(const Json& json, const std::string& file, Numbers& numbers) {
  std::vector<CocoImage> images;
  const std::string where = file + ": images";
  for (const Json& image : json.at("images", file).as_array(where)) {
    const int64_t id = image.get_int("id", where);
    add_id(numbers, id, where);
    images.push_back({id,
                      image.get_string("file_name", where),
                      {edge_of(image, "height", where), edge_of(image, "width", where)}});
    check(!images.back().file_name.empty(), ErrorKind::data,
          "{}: the image of id {} has an empty file_name", where, id);
  }
  check(!images.empty(), ErrorKind::data, "{}: it names no images", file);
  return images;
}

size_t number_of(const Numbers& numbers, const Json& annotation, const char* key,
                 const std::string& where) {
  const int64_t id = annotation.get_int(key, where);
  const auto found = numbers.find(id);
  check(found != numbers.end(), ErrorKind::data, "{}: its {} is {}, which the file does not define",
        where, key, id);
  return found->second;
}

bool is_crowd(const Json& annotation, const std::string& where) {
  const Json* flag = annotation.find("iscrowd");
  if (flag == nullptr || flag->is_null()) return false;
  return flag->is_bool() ? flag->as_bool() : flag->as_int(where + ": iscrowd") != 0;
}

LabelledBox read_box(const Json& annotation, const std::string& where) {
  const Json::Array& numbers = annotation.at("bbox", where).as_array(where + ": bbox");
  check(numbers.size() == 4, ErrorKind::data, "{}: bbox has {} numbers; x, y, width and height",
        where, numbers.size());
  double v[4];
  for (size_t i = 0; i < 4; ++i) v[i] = numbers[i].as_double(where + ": bbox");
  LabelledBox result{.box = Box::of_corner(v[0], v[1], v[2], v[3]),
                     .is_crowd = is_crowd(annotation, where)};
  check_corners(result.box, where);
  const Json* area = annotation.find("area");
  if (area != nullptr && area->is_number()) result.area = area->as_double();
  return result;
}

void read_annotations(const Json& json, const Numbers& images, const Numbers& categories,
                      DetectionSource& source) {
  const Json* all = json.find("annotations");
  check(all != nullptr, ErrorKind::data, "{}: it has no annotations, so there is nothing to detect",
        source.file);
  Numbers ids;
  size_t number = 0;
  for (const Json& annotation : all->as_array(source.file + ": annotations")) {
    const std::string where = fmt::format("{}: annotation {}", source.file, ++number);
    const Json* id = annotation.find("id");
    if (id != nullptr) add_id(ids, id->as_int(where + ": id"), where);
    LabelledBox box = read_box(annotation, where);
    box.label = static_cast<int32_t>(number_of(categories, annotation, "category_id", where));
    source.boxes[number_of(images, annotation, "image_id", where)].push_back(box);
  }
}

// The folder of the images: the first in which one of the first ones is.
std::string find_root(const std::string& file, const std::string& part,
                      const std::vector<CocoImage>& images) {
  const std::string own = parent_path(file), above = parent_path(own);
  std::string stem = file.substr(file.rfind('/') + 1);
  stem = stem.substr(0, stem.rfind('.'));
  if (stem.starts_with("instances_")) stem = stem.substr(10);
  std::vector<std::string> folders;
  for (const std::string& base : {own, above}) {
    for (const std::string& name : {stem, "images/" + stem, part, "images/" + part}) {
      if (!name.empty() && !name.ends_with('/')) folders.push_back(join_path(base, name));
    }
    folders.push_back(join_path(base, "images"));
    folders.push_back(base);
  }
  for (const std::string& folder : folders) {
    for (size_t i = 0; i < std::min<size_t>(images.size(), 10); ++i) {
      if (path_exists(join_path(folder, images[i].file_name))) return folder;
    }
  }
  fail(ErrorKind::data, "{}: its images are not there; '{}' was looked for in {}", file,
       images.front().file_name, fmt::join(folders, ", "));
}

}  // namespace

DetectionSource read_coco(const std::string& file, const std::string& part) {
  const Json json = Json::load(file);
  check(json.is_object(), ErrorKind::data, "{}: is no file of COCO's: {}", file, json.describe());
  DetectionSource source;
  source.file = file;
  Numbers images, categories;
  read_categories(json, source, categories);
  const std::vector<CocoImage> all = read_images(json, file, images);
  source.images.root = find_root(file, part, all);
  for (const CocoImage& image : all) {
    add_image_file(source, image.file_name, image.id);
    source.sizes.back() = image.size;
  }
  read_annotations(json, images, categories, source);
  return source;
}

}  // namespace heddle
