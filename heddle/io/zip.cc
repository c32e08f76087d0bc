// The end of an archive leads to its directory, the directory to its files.
#include "heddle/io/zip.h"

#include <algorithm>
#include <set>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/io/byte_reader.h"

namespace heddle {
namespace {

using Bytes = std::span<const std::byte>;

constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50,
                   kEnd64 = 0x06064b50, kLocator64 = 0x07064b50;
constexpr size_t kEndBytes = 22, kLocatorBytes = 20, kCentralBytes = 46;
constexpr uint16_t kFull16 = 0xffff;
constexpr uint32_t kFull32 = 0xffffffff;
constexpr uint16_t kEncrypted = 1;

// Where the directory lies in the file.
struct Directory {
  uint64_t entries = 0, bytes = 0, begin = 0;
};

uint32_t signature_at(Bytes bytes, size_t at) {
  uint32_t value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// The end record stands last, before a comment of at most 65,535 bytes.
size_t find_end(Bytes bytes, const std::string& path) {
  const size_t lowest = bytes.size() < kEndBytes + kFull16 ? 0 : bytes.size() - kEndBytes - kFull16;
  for (size_t at = bytes.size() < kEndBytes ? 0 : bytes.size() - kEndBytes + 1; at-- > lowest;) {
    if (signature_at(bytes, at) != kEnd) continue;
    uint16_t comment;
    std::memcpy(&comment, bytes.data() + at + kEndBytes - 2, sizeof comment);
    if (at + kEndBytes + comment == bytes.size()) return at;
  }
  fail(ErrorKind::data,
       "{}: it begins as a zip archive, but its directory at the end is missing; the download may "
       "be cut short",
       path);
}

// The record of large archives, which the one before the end record leads to.
Directory read_end64(Bytes bytes, size_t end, const std::string& path) {
  check(end >= kLocatorBytes && signature_at(bytes, end - kLocatorBytes) == kLocator64,
        ErrorKind::data, "{}: the zip archive's directory for large files is missing", path);
  ByteReader locator(bytes.subspan(end - kLocatorBytes, kLocatorBytes), path);
  locator.skip(8);
  const auto place = locator.read<uint64_t>();
  check(place < end, ErrorKind::data, "{}: the zip archive's directory begins at byte {} of {}",
        path, place, bytes.size());
  ByteReader record(bytes.subspan(place, end - place), path + ": zip64 record");
  check(record.read<uint32_t>() == kEnd64, ErrorKind::data,
        "{}: there is no zip64 record at byte {}; the file was altered or damaged", path, place);
  record.skip(8 + 2 + 2 + 4 + 4 + 8);  // size, versions, disks, entries on this disk
  return {.entries = record.read<uint64_t>(),
          .bytes = record.read<uint64_t>(),
          .begin = record.read<uint64_t>()};
}

Directory read_end(Bytes bytes, const std::string& path) {
  const size_t end = find_end(bytes, path);
  ByteReader record(bytes.subspan(end, kEndBytes), path);
  record.skip(4 + 2 + 2 + 2);  // signature, disks, entries on this disk
  Directory d{.entries = record.read<uint16_t>(),
              .bytes = record.read<uint32_t>(),
              .begin = record.read<uint32_t>()};
  if (d.entries == kFull16 || d.bytes == kFull32 || d.begin == kFull32) {
    d = read_end64(bytes, end, path);
  }
  check(d.begin <= end && d.bytes <= end - d.begin && d.entries <= d.bytes / kCentralBytes,
        ErrorKind::data,
        "{}: the zip archive claims a directory of {} entries in {} bytes from byte {}, but the "
        "file has {} bytes; it was cut short or altered",
        path, d.entries, d.bytes, d.begin, bytes.size());
  return d;
}

// A line of the directory: [begin, end) is what the file takes with its header.
struct DirectoryLine {
  ZipEntry entry;
  uint64_t size = 0, begin = 0, end = 0;
};

// Sizes and place that do not fit 32 bits stand in an extra field, in this order.
void read_large(Bytes extra, uint64_t& packed, DirectoryLine& line, const std::string& what) {
  ByteReader fields(extra, what);
  while (fields.remaining() >= 4) {
    const auto id = fields.read<uint16_t>();
    ByteReader field(fields.take(fields.read<uint16_t>()), what);
    if (id != 1) continue;
    for (uint64_t* value : {&line.size, &packed, &line.begin}) {
      if (*value == kFull32) *value = field.read<uint64_t>();
    }
  }
}

DirectoryLine read_line(ByteReader& directory, const std::string& path) {
  check(directory.read<uint32_t>() == kCentral, ErrorKind::data,
        "{}: the zip archive's directory is damaged", path);
  directory.skip(4);
  const auto flags = directory.read<uint16_t>();
  const auto method = directory.read<uint16_t>();
  directory.skip(4);  // time
  DirectoryLine line;
  line.entry.crc = directory.read<uint32_t>();
  uint64_t packed = directory.read<uint32_t>();
  line.size = directory.read<uint32_t>();
  const auto name_bytes = directory.read<uint16_t>(), extra_bytes = directory.read<uint16_t>(),
             comment_bytes = directory.read<uint16_t>();
  directory.skip(2 + 2 + 4);  // disk, attributes
  line.begin = directory.read<uint32_t>();
  line.entry.name = directory.text(name_bytes);
  const std::string what = fmt::format("{}: '{}' in the zip archive", path, line.entry.name);
  read_large(directory.take(extra_bytes), packed, line, what);
  directory.skip(comment_bytes);
  check((flags & kEncrypted) == 0, ErrorKind::data, "{} is encrypted", what);
  check(method == 0 && packed == line.size, ErrorKind::data,
        "{} is compressed (method {}, {} bytes of {}); heddle reads what torch.save writes, where "
        "files are stored as they are",
        what, method, packed, line.size);
  return line;
}

// Finds the bytes of a file behind the header that repeats its name; all lie before `limit`.
void place_entry(Bytes bytes, uint64_t limit, DirectoryLine& line, const std::string& path) {
  const std::string what = fmt::format("{}: '{}' in the zip archive", path, line.entry.name);
  check(line.begin <= limit, ErrorKind::data, "{} begins at byte {}, but the files end at {}", what,
        line.begin, limit);
  ByteReader header(bytes.subspan(line.begin, limit - line.begin), what);
  check(header.read<uint32_t>() == kLocal, ErrorKind::data, "{} has no header at byte {}", what,
        line.begin);
  header.skip(22);  // what the directory says too
  const auto name_bytes = header.read<uint16_t>(), extra_bytes = header.read<uint16_t>();
  const std::string_view name = header.text(name_bytes);
  check(name == line.entry.name, ErrorKind::data, "{} has the header of '{}'", what, name);
  header.skip(extra_bytes);
  line.entry.bytes = header.take(line.size);
  line.end = line.begin + header.at();
}

}  // namespace

bool is_zip(Bytes bytes) { return bytes.size() >= 4 && signature_at(bytes, 0) == kLocal; }

std::vector<ZipEntry> read_zip(Bytes bytes, const std::string& path) {
  const Directory d = read_end(bytes, path);
  ByteReader directory(bytes.subspan(d.begin, d.bytes), path + ": zip directory");
  std::vector<DirectoryLine> lines;
  for (uint64_t i = 0; i < d.entries; ++i) {
    lines.push_back(read_line(directory, path));
    place_entry(bytes, d.begin, lines.back(), path);
  }
  std::vector<ZipEntry> entries;
  std::set<std::string_view> names;
  for (const DirectoryLine& line : lines) {
    check(names.insert(line.entry.name).second, ErrorKind::data,
          "{}: the zip archive holds '{}' twice", path, line.entry.name);
    entries.push_back(line.entry);
  }
  std::ranges::sort(lines, {}, &DirectoryLine::begin);
  for (size_t i = 1; i < lines.size(); ++i) {
    check(lines[i - 1].end <= lines[i].begin, ErrorKind::data,
          "{}: '{}' and '{}' overlap in the zip archive", path, lines[i - 1].entry.name,
          lines[i].entry.name);
  }
  return entries;
}

void verify_entry(const ZipEntry& entry, const std::string& path) {
  const uint32_t sum = crc32(entry.bytes);
  check(sum == entry.crc, ErrorKind::data,
        "{}: '{}' has the checksum {:08x}, but the zip archive states {:08x}; the file was altered "
        "or damaged",
        path, entry.name, sum, entry.crc);
}

}  // namespace heddle
