// The bytes of a gzip file.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <string>

namespace heddle::testing {

inline std::string unzipped(const std::string& path) {
  const gzFile file = gzopen(path.c_str(), "rb");
  EXPECT_NE(file, nullptr) << path;
  std::string all, part(1 << 16, '\0');
  for (int n; (n = gzread(file, part.data(), static_cast<unsigned>(part.size()))) > 0;) {
    all.append(part.data(), static_cast<size_t>(n));
  }
  gzclose(file);
  return all;
}

}  // namespace heddle::testing
