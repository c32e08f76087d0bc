// Tables of boxes and of images, separated by tabs, beside the images.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/base/files/lines.h"
#include "heddle/data/detection/sources.h"
#include "heddle/io/tar.h"

namespace heddle {
namespace {

constexpr std::array<const char*, 3> kParts = {"train", "val", "test"};
constexpr int64_t kMostClasses = 100'000;

// A line's columns, and where it stands.
struct BoxLine {
  std::vector<std::string> columns;
  std::string where;

  double number(size_t column) const { return number_of(columns[column], where); }
};

// Rows below a header, each of as many columns.
std::vector<BoxLine> read_table(const std::string& path, const std::string& header) {
  LineReader reader(path);
  std::string line;
  check(reader.next(line) && line == header, ErrorKind::data,
        "{}: line 1 is '{}'; the header '{}' is needed, with tabs between", path, line, header);
  const auto columns = static_cast<size_t>(std::ranges::count(header, '\t')) + 1;
  std::vector<BoxLine> rows;
  while (reader.next(line)) {
    if (line.empty()) continue;
    reader.check_utf8(line);
    BoxLine row{{}, fmt::format("{}: line {}", path, reader.line_number())};
    for (size_t begin = 0; begin <= line.size();) {
      const size_t end = std::min(line.find('\t', begin), line.size());
      row.columns.push_back(line.substr(begin, end - begin));
      begin = end + 1;
    }
    check(row.columns.size() == columns, ErrorKind::data, "{}: has {} columns; {} are needed",
          row.where, row.columns.size(), columns);
    rows.push_back(std::move(row));
  }
  return rows;
}

size_t part_of(const BoxLine& row) {
  const auto found = std::ranges::find(kParts, row.columns[0]);
  check(found != kParts.end(), ErrorKind::data, "{}: the split is '{}'; train, val or test",
        row.where, row.columns[0]);
  return static_cast<size_t>(found - kParts.begin());
}

// The class of a row, which may be any whole number from 0.
int32_t label_of(const BoxLine& row) {
  const double label = row.number(2);
  check(label >= 0 && label < kMostClasses && label == std::floor(label), ErrorKind::data,
        "{}: the class is {}; a whole number from 0 is needed", row.where, row.columns[2]);
  return static_cast<int32_t>(label);
}

// Those of classes.txt, else those given; empty if there are neither.
std::vector<std::string> read_names(const std::string& folder,
                                    const std::vector<std::string>& given, int32_t last_label) {
  const std::string file = join_path(folder, "classes.txt");
  const bool has_file = path_exists(file);
  const std::vector<std::string> names =
      has_file ? read_lines(file, "the names of the classes") : given;
  check(given.empty() || names == given, ErrorKind::usage,
        "{}: the classes are {}, in `class_names` they are {}; they must be the same, or "
        "`class_names` left out",
        file, fmt::join(names, ", "), fmt::join(given, ", "));
  check(names.empty() || std::ssize(names) > last_label,
        has_file ? ErrorKind::data : ErrorKind::usage,
        "{}: there are boxes of class {}, and names of {} classes{}", folder, last_label,
        names.size(), has_file ? "" : " in `class_names`");
  return names;
}

std::vector<std::string> numbers_to(int32_t last_label) {
  std::vector<std::string> names;
  for (int32_t i = 0; i <= last_label; ++i) names.push_back(std::to_string(i));
  return names;
}

// The images of all parts, in a folder or an archive.
struct ImagePlace {
  std::string folder, room;    // images/ below the folder, or none
  std::optional<TarFile> tar;  // images.tar

  static ImagePlace find(const std::string& folder) {
    ImagePlace place{folder, "", std::nullopt};
    const std::string archive = join_path(folder, "images.tar");
    if (is_directory(join_path(folder, "images"))) {
      place.room = "images";
    } else if (path_exists(archive)) {
      place.tar = TarFile::open(archive);
    }
    return place;
  }

  void add(DetectionSource& source, const std::string& stem) const {
    const int64_t id = std::ssize(source.ids) + 1;
    for (const char* ending : {".jpg", ".jpeg", ".png", ""}) {
      const std::string name = stem + ending;
      if (tar ? tar->members.contains(name)
              : path_exists(join_path(join_path(folder, room), name))) {
        return add_named(source, name, id);
      }
    }
    add_named(source, stem + ".jpg", id);  // that it is missing is said when it is decoded
  }

  void add_named(DetectionSource& source, const std::string& name, int64_t id) const {
    add_image_file(source, tar ? "images.tar: " + name : join_path(room, name), id);
  }

  void finish(DetectionSource& source) const {
    if (!tar) return;
    ImageSource& images = source.images;
    std::vector<std::span<const std::byte>> places;
    for (ImageSource::Entry& entry : images.entries) {
      const auto found = tar->members.find(entry.name.substr(entry.name.find(' ') + 1));
      places.push_back(found == tar->members.end() ? std::span<const std::byte>() : found->second);
      entry.bytes = std::ssize(places.back());
      images.content += fmt::format("{} {}\n", entry.name, checksum(places.back()));
    }
    images.decode = [places, owner = tar->owner](size_t i, const std::string& path) {
      check(places[i].data() != nullptr, ErrorKind::data, "{}: is not there", path);
      Image image = decode_image(places[i], path);
      return DecodedImage{image.size(), std::move(image.pixels)};
    };
  }
};

// Where the images of a table stand.
using Places = std::map<std::string, std::pair<size_t, size_t>>;  // part, image of it

Places add_images(const std::string& folder, const ImagePlace& place,
                  std::array<DetectionSource, 3>& parts) {
  Places places;
  const std::string table = join_path(folder, "images.tsv");
  for (const BoxLine& row : read_table(table, "split\timage")) {
    const size_t part = part_of(row);
    const std::pair<size_t, size_t> at = {part, parts[part].ids.size()};
    check(places.emplace(row.columns[1], at).second, ErrorKind::data,
          "{}: the image '{}' stands there twice", row.where, row.columns[1]);
    place.add(parts[part], row.columns[1]);
  }
  return places;
}

int32_t add_boxes(const std::string& folder, const Places& places,
                  std::array<DetectionSource, 3>& parts) {
  int32_t last_label = -1;
  const std::string table = join_path(folder, "boxes.tsv");
  for (const BoxLine& row : read_table(table, "split\timage\tclass\txmin\tymin\txmax\tymax")) {
    const auto found = places.find(row.columns[1]);
    check(found != places.end() && found->second.first == part_of(row), ErrorKind::data,
          "{}: images.tsv has no image '{}' in {}", row.where, row.columns[1], row.columns[0]);
    const LabelledBox box{.box = {row.number(3), row.number(4), row.number(5), row.number(6)},
                          .label = label_of(row)};
    check_corners(box.box, row.where);
    last_label = std::max(last_label, box.label);
    parts[found->second.first].boxes[found->second.second].push_back(box);
  }
  return last_label;
}

}  // namespace

bool is_box_table(const std::string& folder) { return path_exists(join_path(folder, "boxes.tsv")); }

DetectionSources read_box_table(const std::string& folder,
                                const std::vector<std::string>& class_names) {
  std::array<DetectionSource, 3> parts;
  for (DetectionSource& part : parts) {
    part.file = join_path(folder, "boxes.tsv");
    part.images.root = folder;
  }
  const ImagePlace place = ImagePlace::find(folder);
  const Places places = add_images(folder, place, parts);
  const int32_t last_label = add_boxes(folder, places, parts);
  std::vector<std::string> names = read_names(folder, class_names, last_label);
  const bool is_numbered = names.empty();
  if (is_numbered) names = numbers_to(last_label);
  DetectionSources found;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].ids.empty()) continue;
    parts[i].classes = names;
    parts[i].is_numbered = is_numbered;
    for (size_t c = 0; c < names.size(); ++c) {
      parts[i].category_ids.push_back(static_cast<int64_t>(c) + 1);
    }
    (i == 0   ? found.train
     : i == 1 ? found.val
              : found.test) = [place, part = std::move(parts[i])] {
      DetectionSource source = part;
      place.finish(source);
      return source;
    };
  }
  return found;
}

}  // namespace heddle
