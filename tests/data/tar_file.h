// Archives of files in the format of tar.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

namespace heddle::testing {

inline std::string octal(size_t n, int digits) { return fmt::format("{:0{}o}", n, digits); }

struct TarMember {
  std::string name, text;
  std::string type = "0";
};

/// An archive as tar writes it.
inline std::string tar_file(const std::vector<TarMember>& files) {
  std::string archive;
  for (const auto& [name, text, type] : files) {
    std::string header(512, '\0');
    header.replace(0, name.size(), name);
    header.replace(124, 11, octal(text.size(), 11));
    header.replace(148, 8, 8, ' ');
    header.replace(156, 1, type);
    header.replace(257, 5, "ustar");
    size_t sum = 0;
    for (const char c : header) sum += static_cast<unsigned char>(c);
    header.replace(148, 7, octal(sum, 6) + '\0');
    archive += header + text + std::string((512 - text.size() % 512) % 512, '\0');
  }
  return archive + std::string(1024, '\0');
}

}  // namespace heddle::testing
