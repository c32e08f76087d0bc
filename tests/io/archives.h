// Zip archives and pickles written by hand, so that each of their bytes can be wrong.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "heddle/base/files/files.h"

namespace heddle::testing {

/// The bytes of a number, the lowest first.
inline std::string number(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(i < 8 ? value >> (8 * i) : 0);
  return text;
}

/// A zip archive of stored files, without the records for large ones.
inline std::string zip_of(const std::vector<std::pair<std::string, std::string>>& files) {
  std::string bytes, directory;
  for (const auto& [name, text] : files) {
    const std::string sizes = number(crc32(std::as_bytes(std::span(text))), 4) +
                              number(text.size(), 4) + number(text.size(), 4);
    const std::string common = number(0, 2) + number(0, 2) + number(0, 4) + sizes;
    directory += number(0x02014b50, 4) + number(20, 2) + number(20, 2) + common +
                 number(name.size(), 2) + number(0, 2 + 2 + 2 + 2 + 4) + number(bytes.size(), 4) +
                 name;
    bytes += number(0x04034b50, 4) + number(20, 2) + common + number(name.size(), 2) +
             number(0, 2) + name + text;
  }
  const std::string end = number(0x06054b50, 4) + number(0, 4) + number(files.size(), 2) +
                          number(files.size(), 2) + number(directory.size(), 4) +
                          number(bytes.size(), 4) + number(0, 2);
  return bytes + directory + end;
}

/// Pickled values: text, small number, name, tuple.
inline std::string pickled(const std::string& text) { return "X" + number(text.size(), 4) + text; }
inline std::string pickled(int64_t value) {
  return "\x8a\x08" + number(static_cast<uint64_t>(value), 8);
}
inline std::string named(const std::string& module, const std::string& name) {
  return "c" + module + "\n" + name + "\n";
}
inline std::string tuple(const std::vector<std::string>& values) {
  std::string text = "(";
  for (const std::string& value : values) text += value;
  return text + "t";
}

/// A tensor as torch.save writes it: `count` elements are in the storage.
struct PickledTensor {
  std::string storage = "FloatStorage", key = "0";
  int64_t count = 6, offset = 0;
  std::vector<int64_t> sizes = {2, 3}, strides = {3, 1};

  std::string text() const {
    const auto numbers = [](const std::vector<int64_t>& values) {
      std::vector<std::string> all;
      for (const int64_t value : values) all.push_back(pickled(value));
      return tuple(all);
    };
    const std::string id = tuple({pickled("storage"), named("torch", storage), pickled(key),
                                  pickled("cpu"), pickled(count)}) +
                           "Q";
    return named("torch._utils", "_rebuild_tensor_v2") +
           tuple({id, pickled(offset), numbers(sizes), numbers(strides), "\x89",
                  named("collections", "OrderedDict") + ")R"}) +
           "R";
  }
};

/// A pickle of a dict.
inline std::string pickled_dict(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string text = "\x80\x02}(";
  for (const auto& [key, value] : entries) text += pickled(key) + value;
  return text + "u.";
}

}  // namespace heddle::testing
