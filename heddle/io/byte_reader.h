// Little-endian numbers out of bytes that may end too early.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "heddle/base/error.h"

namespace heddle {

static_assert(std::endian::native == std::endian::little, "the formats are little-endian");

/// Reads one thing after the other. Errors: data, naming `what`, where the bytes end too early.
class ByteReader {
 public:
  ByteReader(std::span<const std::byte> bytes, std::string what)
      : bytes_(bytes), what_(std::move(what)) {}

  size_t at() const { return at_; }
  size_t remaining() const { return bytes_.size() - at_; }
  const std::string& what() const { return what_; }

  template <class T>
  T read() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::span<const std::byte> take(uint64_t count) {
    check(count <= remaining(), ErrorKind::data,
          "{}: {} bytes are needed at byte {}, but it ends after {}; was it cut short?", what_,
          count, at_, bytes_.size());
    const auto taken = bytes_.subspan(at_, static_cast<size_t>(count));
    at_ += taken.size();
    return taken;
  }
  std::string_view text(uint64_t count) {
    const auto taken = take(count);
    return {reinterpret_cast<const char*>(taken.data()), taken.size()};
  }
  /// Up to the next line feed, which is passed over.
  std::string_view line() {
    const std::string_view rest(reinterpret_cast<const char*>(bytes_.data()) + at_, remaining());
    const size_t end = rest.find('\n');
    check(end != rest.npos, ErrorKind::data, "{}: the line at byte {} does not end", what_, at_);
    at_ += end + 1;
    return rest.substr(0, end);
  }
  void skip(uint64_t count) { take(count); }

 private:
  std::span<const std::byte> bytes_;
  std::string what_;
  size_t at_ = 0;
};

}  // namespace heddle
