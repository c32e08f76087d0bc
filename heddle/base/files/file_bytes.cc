// Maps a file, or unpacks it.
#include "heddle/base/files/file_bytes.h"

#include <utility>

#include "heddle/base/files/files.h"
#include "heddle/base/files/lines.h"
#include "heddle/base/files/mmap.h"

namespace heddle {

FileBytes::FileBytes(std::string file) : path(std::move(file)) {
  if (path.ends_with(".gz")) {
    const auto text = std::make_shared<const std::string>(LineReader(path).rest());
    bytes = std::as_bytes(std::span(*text));
    owner = text;
  } else if (file_size(path) > 0) {
    const auto mapped = std::make_shared<const MappedFile>(path);
    bytes = mapped->bytes();
    owner = mapped;
  }
}

}  // namespace heddle
