// Headers of 512 bytes, each before its file, whose bytes are filled up to 512.
#include "heddle/io/tar.h"

#include <charconv>
#include <cstring>
#include <string_view>

#include "heddle/base/error.h"
#include "heddle/base/files/file_bytes.h"

namespace heddle {
namespace {

constexpr size_t kBlock = 512;

// Offset and length of fields of the header.
struct TarField {
  size_t at, size;
};
constexpr TarField kName{0, 100}, kSize{124, 12}, kChecksum{148, 8}, kMagicWord{257, 5},
    kPrefix{345, 155};
constexpr size_t kType = 156;

std::string_view text_of(std::string_view header, TarField field) {
  const std::string_view all = header.substr(field.at, field.size);
  return all.substr(0, all.find('\0'));
}

// An octal number with spaces or zeros around; -1 if it is none.
int64_t octal(std::string_view header, TarField field) {
  int64_t value = 0;
  bool has_digits = false;
  for (const char c : text_of(header, field)) {
    if (c == ' ' && !has_digits) continue;
    if (c == ' ') break;
    if (c < '0' || c > '7') return -1;
    value = value * 8 + (c - '0');
    has_digits = true;
  }
  return has_digits ? value : -1;
}

// The sum of the header's bytes, those of the sum itself taken as spaces.
int64_t sum_of(std::string_view header) {
  int64_t sum = 0;
  for (size_t i = 0; i < kBlock; ++i) {
    const bool is_sum = i >= kChecksum.at && i < kChecksum.at + kChecksum.size;
    sum += is_sum ? ' ' : static_cast<unsigned char>(header[i]);
  }
  return sum;
}

std::string without_dot(std::string name) { return name.starts_with("./") ? name.substr(2) : name; }

// The name in the records "LENGTH KEY=VALUE\n" of pax, before a file's header; empty if it has
// none.
std::string name_in(std::string_view records, const std::string& archive) {
  std::string name;
  while (!records.empty()) {
    size_t length = 0;
    const char* const begin = records.data();
    const auto [stop, fault] = std::from_chars(begin, begin + records.size(), length);
    const auto key = static_cast<size_t>(stop - begin) + 1;  // behind the space
    check(fault == std::errc() && key < length && length <= records.size() &&
              records[key - 1] == ' ' && records[length - 1] == '\n',
          ErrorKind::data, "{}: damaged: what pax says of a file has no records of its form",
          archive);
    const std::string_view record = records.substr(key, length - key - 1);
    if (record.starts_with("path=")) name = record.substr(5);
    records.remove_prefix(length);
  }
  return name;
}

std::string name_of(std::string_view header) {
  const bool has_prefix = text_of(header, kMagicWord) == "ustar" && header[kMagicWord.at + 5] == 0;
  const std::string_view prefix = has_prefix ? text_of(header, kPrefix) : "";
  std::string name(text_of(header, kName));
  return prefix.empty() ? name : std::string(prefix) + "/" + name;
}

}  // namespace

TarFile TarFile::open(const std::string& path) {
  const FileBytes file(path);
  TarFile tar{file.owner, {}};
  const std::span<const std::byte> bytes = file.bytes;
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::string long_name;
  for (size_t at = 0; at + kBlock <= text.size();) {
    const std::string_view header = text.substr(at, kBlock);
    if (header[0] == '\0') return tar;  // blocks of zeros end it
    const int64_t size = octal(header, kSize);
    check(size >= 0 && octal(header, kChecksum) == sum_of(header), ErrorKind::data,
          "{}: damaged, or no .tar archive (a wrong header at byte {})", path, at);
    at += kBlock;
    check(static_cast<uint64_t>(size) <= text.size() - at, ErrorKind::data,
          "{}: is cut short: the file at byte {} has {} bytes", path, at, size);
    const auto length = static_cast<size_t>(size);
    const char type = header[kType];
    if (type == 'L') {  // GNU's: the next file's name
      long_name = text_of(text, {at, length});
    } else if (type == 'x') {  // pax's: of the next file, too
      std::string name = name_in(text.substr(at, length), path);
      if (!name.empty()) long_name = std::move(name);
    } else {
      if (type == '0' || type == '\0') {
        const std::string name = long_name.empty() ? name_of(header) : long_name;
        tar.members[without_dot(name)] = bytes.subspan(at, length);
      }
      long_name.clear();
    }
    at += std::min((length + kBlock - 1) / kBlock * kBlock, text.size() - at);
  }
  fail(ErrorKind::data, "{}: is cut short: its end is missing", path);
}

}  // namespace heddle
