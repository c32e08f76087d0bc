// What kind of set lies at a path; folders of classes.
#include "heddle/data/image_sources.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
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

// Held-out parts, the one that is taken first.
constexpr const char* kHeldOut[] = {"val", "valid", "validation", "dev", "test", "t10k"};

// --- folders of classes ---

std::string extension(const std::string& name) {
  const size_t dot = name.rfind('.');
  std::string ending = dot == name.npos ? "" : name.substr(dot + 1);
  for (char& c : ending) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return ending;
}

struct ClassFolders {
  ImageSource source;
  int64_t others = 0;  // files that are no images, by their names
  std::string first_other;

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
      } else if (is_image_name(file)) {
        source.add_file(below, label);
      } else if (others++ == 0) {
        first_other = path;
      }
    }
  }

  ImageSource finish() {
    if (others > 0) {
      log_warning("passed over: {} that are no images, the first {}", counted(others, "file"),
                  first_other);
    }
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
  return classes.finish();
}

bool is_split_name(const std::string& name) {
  return name == "train" || std::ranges::find(kHeldOut, name) != std::end(kHeldOut);
}

ImageSources find_class_folders(const std::string& path) {
  const std::vector<std::string> folders = folders_in(path);
  check(!folders.empty(), ErrorKind::data,
        "{}: no images that heddle knows. There may be folders of JPEG and PNG files, one a class "
        "(also in train/ and val/), IDX files, CIFAR's .bin files, or train.jpack",
        path);
  ImageSources found;
  const auto is_there = [&](const char* name) {
    return std::ranges::find(folders, name) != folders.end();
  };
  const bool is_split = (is_there("train") && !folders_in(join_path(path, "train")).empty()) ||
                        std::ranges::all_of(folders, is_split_name);
  const auto part = [](const std::string& root, bool is_train) {
    return [root, is_train] { return read_class_folders(root, is_train); };
  };
  if (!is_split) {
    found.train = part(path, true);
    return found;
  }
  if (is_there("train")) found.train = part(join_path(path, "train"), true);
  for (const char* name : kHeldOut) {
    if (!found.val && is_there(name)) found.val = part(join_path(path, name), false);
  }
  return found;
}

// --- files of many images ---

bool is_train_name(const std::string& name) {
  return name.find("train") != name.npos || name.starts_with("data_batch");
}

// Files of the kind in a folder: those to train on, and those of the first held-out part.
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
  for (const char* part : kHeldOut) {
    if (found.val) break;
    found.val = chosen([&](const std::string& name) {
      return !is_train_name(name) && name.find(part) != name.npos;
    });
  }
  if (!found.train && !found.val) return std::nullopt;
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
    source = (packs->train ? packs->train : packs->val)();
  } else {
    ClassFolders all;
    all.source.root = path;
    all.add("", 0);
    check(!all.source.entries.empty(), ErrorKind::data, "{}: there are no JPEG or PNG files in it",
          path);
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
