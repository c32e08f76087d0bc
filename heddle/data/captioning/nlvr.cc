// NLVR: sentences that people judged true or false of drawn pictures.
// Source: Suhr et al. 2017, "A Corpus of Natural Language for Visual Reasoning".
#include <map>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/data/captioning/sources.h"
#include "heddle/data/documents.h"
#include "heddle/io/tar.h"

namespace heddle {
namespace {

// The images of a part: in a folder, or an archive that has its name before theirs.
struct NlvrImages {
  std::string name;  // "dev_images.tar.gz"
  std::optional<TarFile> tar;

  static NlvrImages find(const std::string& folder, const std::string& part) {
    NlvrImages images{part + "_images", std::nullopt};
    if (is_directory(join_path(folder, images.name))) return images;
    for (const char* ending : {".tar", ".tar.gz"}) {
      const std::string path = join_path(folder, part + "_images" + ending);
      if (!path_exists(path)) continue;
      return {part + "_images" + ending, TarFile::open(path)};
    }
    fail(ErrorKind::data, "{}: its images are missing; they may be in {}.tar.gz or {}/",
         join_path(folder, part + ".tsv"), images.name, images.name);
  }

  bool has(const std::string& folder, const std::string& image) const {
    return tar ? tar->members.contains(image)
               : path_exists(join_path(join_path(folder, name), image));
  }

  void add(ImageSource& source, const std::string& image) const {
    if (!tar) return source.add_file(join_path(name, image), 0);
    const std::span<const std::byte> bytes = tar->members.at(image);
    source.entries.push_back({fmt::format("{}: {}", name, image), 0, std::ssize(bytes)});
    source.content += fmt::format("{} {}\n", source.entries.back().name, checksum(bytes));
  }

  void finish(ImageSource& source) const {
    source.labels = {"image"};
    source.decode = [](size_t, const std::string& path) { return decode_image_file(path); };
    if (!tar) return;
    std::vector<std::span<const std::byte>> places;
    for (const ImageSource::Entry& entry : source.entries) {
      places.push_back(tar->members.at(entry.name.substr(name.size() + 2)));
    }
    source.decode = [places, owner = tar->owner](size_t i, const std::string& path) {
      Image image = decode_image(places[i], path);
      return DecodedImage{image.size(), std::move(image.pixels)};
    };
  }
};

}  // namespace

CaptionSource read_nlvr(const std::string& folder, const std::string& part) {
  const NlvrImages images = NlvrImages::find(folder, part);
  CaptionSource source;
  source.file = join_path(folder, part + ".tsv");
  source.images.root = folder;
  std::map<std::string, size_t> numbers;
  for (const TableRow& row : read_columns(source.file, {"image", "label", "sentence"})) {
    const std::string where = fmt::format("{}: line {}", source.file, row.line);
    const std::string &image = row.cells[0], &label = row.cells[1], &sentence = row.cells[2];
    check(label == "true" || label == "false", ErrorKind::data,
          "{}: the label is '{}'; true or false is needed", where, label);
    check(images.has(folder, image), ErrorKind::data, "{}: there is no image '{}' in {}", where,
          image, join_path(folder, images.name));
    check_caption(sentence, where);
    if (label == "false") continue;
    const auto [at, is_new] = numbers.try_emplace(image, source.captions.size());
    if (is_new) {
      images.add(source.images, image);
      source.captions.emplace_back();
      source.scenes.emplace_back();
    }
    source.captions[at->second].push_back(sentence);
  }
  check(!source.captions.empty(), ErrorKind::data, "{}: no sentence in it is labelled true",
        source.file);
  images.finish(source.images);
  return source;
}

}  // namespace heddle
