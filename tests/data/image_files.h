// Files of images in formats that hold many.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <functional>
#include <string>
#include <vector>

#include "heddle/base/files/files.h"
#include "tests/base/temporary.h"
#include "tests/support/places.h"

namespace heddle::testing {

inline std::string image_file(const std::string& name) {
  return read_file(std::string(kFixtures) + "/images/" + name);
}

/// A number of four bytes, the greatest first.
inline std::string big_endian(uint32_t n) {
  return {static_cast<char>(n >> 24), static_cast<char>(n >> 16), static_cast<char>(n >> 8),
          static_cast<char>(n)};
}

/// IDX: sizes of the dimensions, then bytes.
inline std::string idx_file(const std::vector<uint32_t>& sizes, const std::string& bytes) {
  std::string file = big_endian(0x800 + static_cast<uint32_t>(sizes.size()));
  for (const uint32_t size : sizes) file += big_endian(size);
  return file + bytes;
}

/// So many bytes that count on from `first`.
inline std::string counting(size_t count, int first = 0) {
  std::string bytes(count, '\0');
  for (char& byte : bytes) byte = static_cast<char>(first++);
  return bytes;
}

/// A .jpack file of images, each a label and what follows the common beginning.
inline std::string jpack_file(const std::vector<std::pair<int, std::string>>& images) {
  std::string file = "JPK1";
  const auto number = [&](size_t n, int bytes) {
    for (int i = 0; i < bytes; ++i) file += static_cast<char>(n >> (8 * i));
  };
  number(images.size(), 4);
  for (const auto& [label, bytes] : images) {
    file += static_cast<char>(label);
    number(bytes.size(), 2);
    file += bytes;
  }
  return file;
}

inline void write_gzip(const std::string& path, const std::string& text) {
  const gzFile file = gzopen(path.c_str(), "wb");
  ASSERT_EQ(gzwrite(file, text.data(), static_cast<unsigned>(text.size())),
            static_cast<int>(text.size()));
  gzclose(file);
}

/// What an action says on the standard error.
inline std::string warnings_of(const std::function<void()>& action) {
  ::testing::internal::CaptureStderr();
  action();
  return ::testing::internal::GetCapturedStderr();
}

/// Writes files, with the folders above them.
inline void write_below(const TemporaryFolder& folder, const std::string& name,
                        const std::string& text) {
  make_directories(parent_path(folder / name));
  folder.write(name, text);
}

}  // namespace heddle::testing
