// Pascal VOC's annotations in XML, a file an image.
// Source: Everingham et al. 2010, "The PASCAL Visual Object Classes Challenge", development kit.
#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/base/files/lines.h"
#include "heddle/data/detection/sources.h"
#include "heddle/data/detection/xml.h"

namespace heddle {
namespace {

constexpr const char* kAnnotations = "Annotations";

struct VocObject {
  std::string name;
  Box box;
};

struct VocImage {
  std::string file;  // below the folder
  ImageSize size;
  std::vector<VocObject> objects;
};

double number_in(const XmlElement& element, const std::string& path) {
  return number_of(element.text,
                   fmt::format("{}: line {}: <{}>", path, element.line, element.name));
}

VocObject read_object(const XmlElement& object, const std::string& path) {
  const XmlElement &name = object.at("name", path), &box = object.at("bndbox", path);
  check(!name.text.empty(), ErrorKind::data, "{}: line {}: an object's <name> is empty", path,
        name.line);
  const auto corner = [&](const char* key) { return number_in(box.at(key, path), path); };
  const Box read{corner("xmin"), corner("ymin"), corner("xmax"), corner("ymax")};
  check_corners(read, fmt::format("{}: line {}", path, box.line));
  return {name.text, read};
}

ImageSize read_size(const XmlElement& root, const std::string& path) {
  const XmlElement* size = root.find("size");
  if (size == nullptr) return {};
  const auto edge = [&](const char* key) {
    const double pixels = number_in(size->at(key, path), path);
    check(pixels >= 0 && pixels <= kMostPixels, ErrorKind::data,
          "{}: line {}: the image's {} is {}", path, size->line, key, pixels);
    return static_cast<int64_t>(pixels);
  };
  return {edge("height"), edge("width")};
}

// The file that <filename> names, else that which is called as the annotation.
std::string find_image(const std::string& folder, const std::string& stem, std::string name) {
  name = name.substr(name.find_last_of("/\\") + 1);
  for (const char* room : {"JPEGImages", "images", ""}) {
    for (const std::string& file : {name, stem + ".jpg", stem + ".jpeg", stem + ".png"}) {
      const std::string below = join_path(room, file);
      if (!file.empty() && path_exists(join_path(folder, below))) return below;
    }
  }
  return join_path("JPEGImages", name.empty() ? stem + ".jpg" : name);
}

VocImage read_annotation(const std::string& folder, const std::string& stem) {
  const std::string path = join_path(join_path(folder, kAnnotations), stem + ".xml");
  const XmlElement root = parse_xml(read_file(path), path);
  check(root.name == "annotation", ErrorKind::data, "{}: is <{}>; <annotation> is needed", path,
        root.name);
  VocImage image;
  const XmlElement* name = root.find("filename");
  image.file = find_image(folder, stem, name == nullptr ? "" : name->text);
  image.size = read_size(root, path);
  for (const XmlElement& child : root.children) {
    if (child.name == "object") image.objects.push_back(read_object(child, path));
  }
  return image;
}

// The first word of each line.
std::vector<std::string> read_part(const std::string& path) {
  std::vector<std::string> stems;
  LineReader reader(path);
  for (std::string line; reader.next(line);) {
    reader.check_utf8(line);
    const size_t begin = line.find_first_not_of(" \t");
    if (begin == line.npos) continue;
    stems.push_back(line.substr(begin, line.find_first_of(" \t", begin) - begin));
  }
  return stems;
}

DetectionSource source_of(const std::string& folder, const std::vector<std::string>& stems,
                          const std::map<std::string, VocImage>& images,
                          const std::set<std::string>& classes) {
  DetectionSource source;
  source.file = join_path(folder, kAnnotations);
  source.images.root = folder;
  source.classes.assign(classes.begin(), classes.end());
  std::set<std::string> seen;
  for (const std::string& stem : stems) {
    check(seen.insert(stem).second, ErrorKind::data,
          "{}: the image '{}' stands twice in ImageSets/Main", folder, stem);
    const auto found = images.find(stem);
    check(found != images.end(), ErrorKind::data,
          "{}: ImageSets/Main names '{}', of which there is no file in {}", folder, stem,
          kAnnotations);
    add_image_file(source, found->second.file, std::ssize(source.ids) + 1);
    source.sizes.back() = found->second.size;
    for (const VocObject& object : found->second.objects) {
      const auto label = std::distance(classes.begin(), classes.find(object.name));
      source.boxes.back().push_back({.box = object.box, .label = static_cast<int32_t>(label)});
    }
  }
  for (size_t i = 0; i < source.classes.size(); ++i) {
    source.category_ids.push_back(static_cast<int64_t>(i) + 1);
  }
  return source;
}

}  // namespace

bool is_voc(const std::string& folder) { return is_directory(join_path(folder, kAnnotations)); }

DetectionSources read_voc(const std::string& folder) {
  const auto images = std::make_shared<std::map<std::string, VocImage>>();
  std::set<std::string> classes;
  std::vector<std::string> stems;
  for (const std::string& name : list_directory(join_path(folder, kAnnotations))) {
    if (name.starts_with('.') || !name.ends_with(".xml")) continue;
    stems.push_back(name.substr(0, name.size() - 4));
    const VocImage& image = (*images)[stems.back()] = read_annotation(folder, stems.back());
    for (const VocObject& object : image.objects) classes.insert(object.name);
  }
  check(!stems.empty(), ErrorKind::data, "{}/{}: there is no .xml file in it", folder,
        kAnnotations);
  const auto part_of = [&](const std::vector<std::string>& chosen) {
    return [=] { return source_of(folder, chosen, *images, classes); };
  };
  const auto part = [&](const char* name) -> UnreadPart<DetectionSource> {
    const std::string path = join_path(folder, fmt::format("ImageSets/Main/{}.txt", name));
    if (!path_exists(path)) return {};
    const std::vector<std::string> chosen = read_part(path);
    if (chosen.empty()) return {};
    return part_of(chosen);
  };
  DetectionSources found{part("train"), part("val"), part("test")};
  if (!found.train && !found.val) found.train = part("trainval");
  if (!found.train && !found.val && !found.test) found.train = part_of(stems);
  return found;
}

}  // namespace heddle
