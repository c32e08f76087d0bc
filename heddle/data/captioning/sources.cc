// What kind of set of captions lies at a path.
#include "heddle/data/captioning/sources.h"

#include <utility>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/data/documents.h"
#include "heddle/data/parallel_text.h"

namespace heddle {
namespace {

using Part = UnreadPart<CaptionSource>;

// The first of these files of a part that is there.
template <class F>
Part first_of(const std::string& folder, std::initializer_list<const char*> parts,
              const char* ending, const F& read) {
  for (const char* part : parts) {
    if (!path_exists(join_path(folder, std::string(part) + ending))) continue;
    return [read, part] { return read(part); };
  }
  return {};
}

std::optional<CaptionSources> find_caption_lines(const std::string& folder) {
  const auto part = [&](std::initializer_list<const char*> names) {
    return first_of(folder, names, ".jsonl", [folder](const char* name) {
      return read_caption_lines(join_path(folder, fmt::format("{}.jsonl", name)));
    });
  };
  CaptionSources found{part({"train"}), part({"val", "valid", "validation", "dev"}), part({"test"}),
                       part({"unseen"})};
  if (!found.train && !found.val && !found.test && !found.unseen) return std::nullopt;
  return found;
}

std::optional<CaptionSources> find_nlvr(const std::string& folder) {
  const auto part = [&](const char* name) {
    return first_of(folder, {name}, ".tsv",
                    [folder](const char* n) { return read_nlvr(folder, n); });
  };
  CaptionSources found{part("train"), part("dev"), part("test"), {}};
  if (!found.train) found.train = std::exchange(found.val, nullptr);
  if (!found.train && !found.test) return std::nullopt;
  return found;
}

}  // namespace

CaptionSources find_captions(const std::string& path) {
  check(path_exists(path), ErrorKind::data, "{}: there is no such file or folder", path);
  CaptionSources found;
  if (!is_directory(path)) {
    check(is_json_lines(path), ErrorKind::data,
          "{}: is no set of captions by its name; a .jsonl file is, or a folder", path);
    found.train = [path] { return read_caption_lines(path); };
    return found;
  }
  if (auto lines = find_caption_lines(path)) return std::move(*lines);
  if (auto nlvr = find_nlvr(path)) return std::move(*nlvr);
  fail(ErrorKind::data,
       "{}: no images with captions that heddle knows. There may be train.jsonl and val.jsonl, a "
       "line {{\"file_name\": .., \"captions\": [..]}} an image, or NLVR's dev.tsv with "
       "dev_images.tar.gz",
       path);
}

void check_caption(const std::string& caption, const std::string& where) {
  check(!is_blank(caption), ErrorKind::data, "{}: the caption is empty; write one, or take it out",
        where);
}

}  // namespace heddle
