// What kind of set lies at a path; folders of classes.
#include "heddle/data/image_sources.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <utility>

#include "heddle/base/distinct_names.h"
#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/base/log.h"
#include "heddle/base/progress.h"
#include "heddle/base/utf8.h"
#include "heddle/data/packed_images.h"

namespace heddle {
namespace {

// Held-out parts, of each kind the one that is taken first in front.
constexpr std::array kToValidate = {"val", "valid", "validation", "dev"};
constexpr std::array kToTest = {"test", "t10k"};

// --- folders of classes ---

std::string extension(const std::string& name) {
  const size_t dot = name.rfind('.');
  std::string ending = dot == name.npos ? "" : name.substr(dot + 1);
  for (char& c : ending) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return ending;
}

bool is_image_file(const std::string& folder, const std::string& name) {
  return !name.starts_with('.') && is_image_name(name) && !is_directory(join_path(folder, name));
}

// What of a folder is not taken.
struct PassedOver {
  int64_t count = 0;
  std::string first = {};

  void add(const std::string& path) {
    if (count++ == 0) first = path;
  }
  void warn(std::string_view one, std::string_view what) const {
    if (count == 0) return;
    log_warning("passed over: {} {}, the first {}", counted(count, one), what, first);
  }
};

struct ClassFolders {
  ImageSource source;
  PassedOver others = {}, links = {};

  // All images in a folder and those below it. A link to a folder is followed only where it is a
  // class: below, links could lead around in circles.
  void add(const std::string& name, int32_t label) {
    for (const std::string& file : list_directory(join_path(source.root, name))) {
      if (file.starts_with('.')) continue;
      const std::string below = join_path(name, file), path = join_path(source.root, below);
      struct stat facts;
      if (lstat(path.c_str(), &facts) != 0) fail_errno("cannot read", path, errno);
      if (S_ISDIR(facts.st_mode)) {
        add(below, label);
      } else if (S_ISLNK(facts.st_mode) && is_directory(path)) {
        links.add(path);
      } else if (is_image_name(file)) {
        source.add_file(below, label);
      } else {
        others.add(path);
      }
    }
  }

  ImageSource finish() {
    others.warn("file", "that are no images");
    links.warn("link", "to folders below that of a class");
    source.decode = [](size_t, const std::string& path) { return decode_image_file(path); };
    return std::move(source);
  }
};

std::vector<std::string> folders_in(const std::string& path) {
  std::vector<std::string> folders;
  for (const std::string& name : list_directory(path)) {
    if (!name.starts_with('.') && is_directory(join_path(path, name))) folders.push_back(name);
  }
  return folders;
}

void warn_of_strays(const std::string& folder) {
  PassedOver strays;
  for (const std::string& name : list_directory(folder)) {
    if (is_image_file(folder, name)) strays.add(join_path(folder, name));
  }
  strays.warn("image", "beside folders, in none of them");
}

ImageSource read_class_folders(const std::string& root, bool is_train) {
  ClassFolders classes;
  ImageSource& source = classes.source;
  source.root = root;
  source.labels = folders_in(root);
  for (size_t label = 0; label < source.labels.size(); ++label) {
    check(!first_invalid_utf8(source.labels[label]), ErrorKind::data,
          "{}: the name of the folder is not UTF-8, and it is the name of a class; rename it",
          join_path(root, source.labels[label]));
    const size_t before = source.entries.size();
    classes.add(source.labels[label], static_cast<int32_t>(label));
    check(source.entries.size() > before || !is_train, ErrorKind::data,
          "{}: the folder of a class has no image file; put JPEG or PNG files there, or remove it",
          join_path(root, source.labels[label]));
  }
  check(!source.entries.empty(), ErrorKind::data, "{}: no folder in it has JPEG or PNG files",
        root);
  warn_of_strays(root);
  return classes.finish();
}

// --- folders of parts ---

bool is_part_name(const std::string& name) {
  const auto is_among = [&](const auto& names) {
    return std::ranges::find(names, name) != std::end(names);
  };
  return name == "train" || is_among(kToValidate) || is_among(kToTest);
}

std::string part_names() {
  return fmt::format("train, {}, {}", fmt::join(kToValidate, ", "), fmt::join(kToTest, ", "));
}

size_t images_in(const std::string& path, const std::string& folder) {
  ClassFolders all;
  all.source.root = path;
  all.add(folder, 0);
  return all.source.entries.size();
}

// Whether folders are parts, with those of the classes in them; else they are classes.
bool are_parts(const std::string& path, const std::vector<std::string>& folders) {
  if (std::ranges::all_of(folders, is_part_name)) return true;
  std::vector<std::string> parts, others;
  for (const std::string& name : folders) {
    if (is_part_name(name) && !folders_in(join_path(path, name)).empty()) parts.push_back(name);
  }
  if (parts.empty()) return false;
  for (const std::string& name : folders) {
    if (!is_part_name(name) && images_in(path, name) > 0) others.push_back(name + "/");
  }
  const bool has_train = std::ranges::find(parts, "train") != parts.end();
  check(others.empty() || (has_train && parts.size() > 1), ErrorKind::data,
        "{0}: {1}/ may be a part of the images or a class: there are folders in it, and beside it "
        "{2}. A part is called by one of {3}: rename the others so, or give {0}/{1} itself. If it "
        "is a class, put all folders of classes into a folder train/",
        path, parts.front(), fmt::join(others, ", "), part_names());
  return true;
}

void warn_of_other_folders(const std::string& path, const std::vector<std::string>& folders,
                           const std::vector<std::string>& taken) {
  std::vector<std::string> others;
  for (const std::string& name : folders) {
    if (std::ranges::find(taken, name) != taken.end()) continue;
    const size_t images = images_in(path, name);
    if (images == 0) continue;
    others.push_back(
        fmt::format("{}/ with {}", name, counted(static_cast<int64_t>(images), "image")));
  }
  if (others.empty()) return;
  log_warning("{}: passed over: {}; taken are {}/ (parts are called {})", path,
              fmt::join(others, ", "), fmt::join(taken, "/, "), part_names());
}

ImageSources find_class_folders(const std::string& path) {
  const std::vector<std::string> folders = folders_in(path);
  check(!folders.empty(), ErrorKind::data,
        "{}: no images that heddle knows. There may be folders of JPEG and PNG files, one a class "
        "(also in train/ and val/), IDX files, CIFAR's .bin files, or train.jpack",
        path);
  const auto read = [](const std::string& root, bool is_train) {
    return [root, is_train] { return read_class_folders(root, is_train); };
  };
  ImageSources found;
  if (!are_parts(path, folders)) {
    found.train = read(path, true);
    return found;
  }
  std::vector<std::string> taken;
  const auto take = [&](UnreadPart<ImageSource>& part, const char* name) {
    if (part || std::ranges::find(folders, name) == folders.end()) return;
    part = read(join_path(path, name), &part == &found.train);
    taken.emplace_back(name);
  };
  take(found.train, "train");
  for (const char* name : kToValidate) take(found.val, name);
  for (const char* name : kToTest) take(found.test, name);
  warn_of_other_folders(path, folders, taken);
  warn_of_strays(path);
  return found;
}

// Of a folder of parts that to train on, else the folder itself.
std::string folder_to_train_on(const std::string& path) {
  const std::vector<std::string> folders = folders_in(path);
  const bool has_train = std::ranges::find(folders, "train") != folders.end();
  if (!has_train || !are_parts(path, folders)) return path;
  warn_of_other_folders(path, folders, {"train"});
  warn_of_strays(path);
  return join_path(path, "train");
}

// --- files of many images ---

bool is_train_name(const std::string& name) {
  return name.find("train") != name.npos || name.starts_with("data_batch");
}

// Files of the kind in a folder: those to train on, and of each kind of held-out parts the first.
std::optional<ImageSources> find_packs_of(PackKind kind, const std::string& folder) {
  std::vector<std::string> all;
  for (const std::string& name : list_directory(folder)) {
    if (pack_kind(name) == kind) all.push_back(name);
  }
  const auto chosen = [&](const auto& is_chosen) -> UnreadPart<ImageSource> {
    std::vector<std::string> names;
    std::ranges::copy_if(all, std::back_inserter(names), is_chosen);
    if (names.empty()) return {};
    return [kind, folder, names] { return read_packs(kind, folder, names); };
  };
  ImageSources found;
  found.train = chosen(is_train_name);
  const auto take = [&](UnreadPart<ImageSource>& into, const char* part) {
    if (into) return;
    into = chosen([&](const std::string& name) {
      return !is_train_name(name) && name.find(part) != name.npos;
    });
  };
  for (const char* part : kToValidate) take(found.val, part);
  for (const char* part : kToTest) take(found.test, part);
  if (!found.train && !found.val && !found.test) return std::nullopt;
  return found;
}

// Those of the first kind that is there.
std::optional<ImageSources> find_packs(const std::string& folder) {
  for (const PackKind kind : {PackKind::jpeg, PackKind::idx, PackKind::cifar}) {
    if (auto found = find_packs_of(kind, folder)) return found;
  }
  return std::nullopt;
}

}  // namespace

std::string ImageSource::path(size_t i) const { return join_path(root, entries[i].name); }

bool is_image_name(const std::string& name) {
  static constexpr const char* endings[] = {"jpg", "jpeg", "jpe",  "jfif", "png",  "gif", "bmp",
                                            "tif", "tiff", "webp", "heic", "avif", "ppm"};
  return std::ranges::find(endings, extension(name)) != std::end(endings);
}

void ImageSource::add_file(const std::string& name, int32_t label) {
  struct stat facts = {};
  if (stat(join_path(root, name).c_str(), &facts) != 0) facts = {};
  entries.push_back({name, label, static_cast<int64_t>(facts.st_size)});
  content += fmt::format("{} {} {}.{:09}\n", name, facts.st_size, facts.st_mtim.tv_sec,
                         facts.st_mtim.tv_nsec);
}

DecodedImage decode_image_file(const std::string& path) {
  Image image = read_image(path);
  return DecodedImage{image.size(), std::move(image.pixels)};
}

ImageSources find_images(const std::string& path) {
  check(path_exists(path), ErrorKind::data, "{}: there is no such file or folder", path);
  if (is_directory(path)) {
    std::optional<ImageSources> packs = find_packs(path);
    return packs ? std::move(*packs) : find_class_folders(path);
  }
  const size_t slash = path.rfind('/');
  const std::string name = slash == path.npos ? path : path.substr(slash + 1);
  const PackKind kind = pack_kind(name);
  check(kind != PackKind::none, ErrorKind::data,
        "{}: is no set of images by its name; IDX files (..-images-idx3-ubyte), CIFAR's .bin and "
        ".jpack are",
        path);
  ImageSources found;
  found.train = [=] { return read_packs(kind, parent_path(path), {name}); };
  return found;
}

ImageSource find_unlabelled(const std::string& path) {
  check(path_exists(path), ErrorKind::data, "{}: there is no such file or folder", path);
  std::optional<ImageSources> packs = is_directory(path) ? find_packs(path) : find_images(path);
  ImageSource source;
  if (packs) {
    source = (packs->train ? packs->train : packs->val ? packs->val : packs->test)();
  } else {
    const std::string root = folder_to_train_on(path);
    ClassFolders all;
    all.source.root = root;
    all.add("", 0);
    check(!all.source.entries.empty(), ErrorKind::data, "{}: there are no JPEG or PNG files in it",
          root);
    source = all.finish();
  }
  source.labels = {""};
  for (ImageSource::Entry& entry : source.entries) entry.label = 0;
  return source;
}

std::vector<int32_t> places_among(const std::vector<std::string>& names,
                                  const std::vector<std::string>& others) {
  const std::vector<std::string> known = distinct_names(others);
  std::vector<int32_t> places;
  for (const std::string& name : distinct_names(names)) {
    const auto at = std::ranges::find(known, name);
    places.push_back(at == known.end() ? -1 : static_cast<int32_t>(at - known.begin()));
  }
  return places;
}

void relabel(ImageSource& source, const std::vector<std::string>& labels) {
  if (source.labels == labels) return;
  const std::vector<int32_t> as = places_among(source.labels, labels);
  for (size_t i = 0; i < source.entries.size(); ++i) {
    int32_t& label = source.entries[i].label;
    check(as[label] >= 0, ErrorKind::data, "{}: its class '{}' is not among the {} known ones",
          source.path(i), source.labels[label], labels.size());
    label = as[label];
  }
  source.labels = labels;
}

}  // namespace heddle
