// Captions in JSON lines, beside their images.
#include <map>
#include <set>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/base/log.h"
#include "heddle/base/progress.h"
#include "heddle/data/captioning/sources.h"
#include "heddle/data/documents.h"

namespace heddle {
namespace {

class CaptionLines {
 public:
  explicit CaptionLines(const std::string& file) {
    source_.file = file;
    source_.images.root = parent_path(file);
    source_.images.labels = {"image"};
    source_.images.decode = [](size_t, const std::string& path) { return decode_image_file(path); };
  }

  void add(const Json& line, const std::string& where, int64_t number) {
    const std::string& name = line.get_string("file_name", where);
    const auto [first, is_new] = lines_.try_emplace(name, number);
    check(is_new, ErrorKind::data,
          "{}: the image '{}' stands on line {} already; give all its captions there", where, name,
          first->second);
    const std::string path = join_path(source_.images.root, name);
    check(path_exists(path) && !is_directory(path), ErrorKind::data,
          "{}: there is no image '{}' for these captions", where, path);
    std::vector<std::string> captions = line.at("captions", where).as_strings(where);
    check(!captions.empty(), ErrorKind::data, "{}: the image '{}' has no caption", where, name);
    for (const std::string& caption : captions) check_caption(caption, where);
    source_.images.add_file(name, 0);
    source_.captions.push_back(std::move(captions));
    source_.scenes.emplace_back();
    if (line.contains("objects")) source_.scenes.back() = {line.dump(), where};
  }

  CaptionSource finish() {
    check(!source_.captions.empty(), ErrorKind::data, "{}: the file has no line", source_.file);
    warn_of_others();
    return std::move(source_);
  }

 private:
  void warn_of_others() const {
    std::set<std::string> folders;
    for (const auto& [name, line] : lines_) folders.insert(name.substr(0, name.rfind('/') + 1));
    int64_t others = 0;
    std::string first;
    for (const std::string& folder : folders) {
      if (folder.empty()) continue;  // the sets of other parts may lie there
      for (const std::string& file : list_directory(join_path(source_.images.root, folder))) {
        if (lines_.contains(folder + file) || !is_image_name(file)) continue;
        if (others++ == 0) first = join_path(source_.images.root, folder + file);
      }
    }
    if (others == 0) return;
    log_warning("{}: passed over: {} without a caption, the first {}", source_.file,
                counted(others, "image"), first);
  }

  CaptionSource source_;
  std::map<std::string, int64_t> lines_;  // of each image
};

}  // namespace

CaptionSource read_caption_lines(const std::string& file) {
  CaptionLines lines(file);
  for_json_lines(file, [&](const Json& line, const std::string& where, int64_t number) {
    lines.add(line, where, number);
  });
  return lines.finish();
}

}  // namespace heddle
