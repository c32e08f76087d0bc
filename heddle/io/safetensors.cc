// The safetensors format: 8 bytes of header length, a JSON header, the bytes of all tensors.
#include "heddle/io/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/base/json/json.h"
#include "heddle/base/parallel.h"

namespace heddle {

namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr size_t kPrefix = 8;
// Of a tensor's description; a name stands outside it, and six axes of 19 digits within.
constexpr size_t kLongestEntry = 4096;
constexpr std::string_view kMetadataKey = "__metadata__";
using DTypeName = std::pair<std::string_view, DType>;
constexpr DTypeName kDTypes[] = {{"F64", DType::f64},     {"F32", DType::f32}, {"F16", DType::f16},
                                 {"BF16", DType::bf16},   {"I64", DType::i64}, {"I32", DType::i32},
                                 {"I16", DType::i16},     {"I8", DType::i8},   {"U8", DType::u8},
                                 {"BOOL", DType::boolean}};

DType parse_dtype(const std::string& text, const std::string& what) {
  const auto* const known = std::ranges::find(kDTypes, text, &DTypeName::first);
  check(known != std::end(kDTypes), ErrorKind::data,
        "{} has dtype '{}'; heddle reads F64, F32, F16, BF16, I64, I32, I16, I8, U8 and BOOL", what,
        text);
  return known->second;
}

std::string_view dtype_text(DType dtype) {
  const auto* const known = std::ranges::find(kDTypes, dtype, &DTypeName::second);
  check(known != std::end(kDTypes), ErrorKind::internal,
        "safetensors: dtype {} has no name in the format", static_cast<int>(dtype));
  return known->first;
}

/// A tensor's entry in the header: its place is [begin, end) of the data that follows the header.
struct HeaderEntry {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  int64_t begin, end;
};

HeaderEntry parse_entry(const std::string& path, const std::string& name, const Json& json) {
  const std::string what = fmt::format("{}: tensor '{}'", path, name);
  for (const auto& [key, value] : json.as_object(what)) {
    check(key == "dtype" || key == "shape" || key == "data_offsets", ErrorKind::data,
          "{} has the unknown key '{}' in its header", what, key);
  }
  HeaderEntry entry = {name, parse_dtype(json.get_string("dtype", what), what),
                       json.at("shape", what).as_ints(what + ": shape"), 0, 0};
  const std::vector<int64_t> place = json.at("data_offsets", what).as_ints(what + ": data_offsets");
  check(place.size() == 2 && place[0] >= 0 && place[0] <= place[1], ErrorKind::data,
        "{} has data_offsets [{}]; they must be its first byte and the one after its last", what,
        fmt::join(place, ", "));
  entry.begin = place[0];
  entry.end = place[1];
  const int64_t needed = bytes_of(entry.dtype, entry.shape);
  check(needed >= 0, ErrorKind::data, "{} has the impossible shape [{}]", what,
        fmt::join(entry.shape, ", "));
  check(needed == entry.end - entry.begin, ErrorKind::data,
        "{} of dtype {} and shape [{}] needs {} bytes, but its offsets span {}", what,
        dtype_text(entry.dtype), fmt::join(entry.shape, ", "), needed, entry.end - entry.begin);
  return entry;
}

/// Walks over the members of an object in their order, so that a large one is never in memory as a
/// whole. `text` is the object and nothing else but white space, and must outlive this; `source` (a
/// path) opens messages.
class JsonMembers {
 public:
  JsonMembers(std::string_view text, std::string source) : text_(text), source_(std::move(source)) {
    expect('{');
  }

  /// The next member: its name, and the text of its value, for Json::parse(). False after the last.
  /// Errors: data, with the column (bytes from 1), for what is no JSON.
  bool next(std::string& name, std::string_view& value) {
    if (skip_space() == '}') {
      ++at_;
      if (skip_space() != '\0' || at_ < text_.size()) fail_here("the end");
      return false;
    }
    if (!is_first_) expect(',');
    is_first_ = false;
    skip_space();
    name = Json::parse(string_text(), source_).as_string(source_);
    expect(':');
    skip_space();
    value = value_text();
    if (value.empty()) fail_here("a value");
    return true;
  }

 private:
  /// The character that is next, '\0' at the end.
  char skip_space() {
    at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size());
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  void expect(char c) {
    if (skip_space() != c) fail_here(c == '{' ? "'{'" : c == ',' ? "',' or '}'" : "':'");
    ++at_;
  }

  /// A string with its quotes, as far as they tell: what is between them is not looked at.
  std::string_view string_text() {
    const size_t begin = at_;
    if (at_ == text_.size() || text_[at_] != '"') fail_here("a name in quotes");
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) at_ += text_[at_] == '\\';
    if (at_ >= text_.size()) fail_here("the end of a string");
    return text_.substr(begin, ++at_ - begin);
  }

  /// Up to the ',' or '}' that is not inside.
  std::string_view value_text() {
    const size_t begin = at_;
    for (int64_t depth = 0; at_ < text_.size();) {
      const char c = text_[at_];
      if (c == '"') {
        string_text();
        continue;
      }
      if (depth == 0 && (c == ',' || c == '}' || c == ']')) break;
      depth += (c == '{' || c == '[') - (c == '}' || c == ']');
      ++at_;
    }
    return text_.substr(begin, at_ - begin);
  }

  [[noreturn]] void fail_here(const char* needed) const {
    fail(ErrorKind::data, "{}: not valid JSON at column {}{}: {} is needed", source_,
         std::min(at_, text_.size()) + 1, at_ >= text_.size() ? ", where the text ends" : "",
         needed);
  }

  std::string_view text_;
  std::string source_;
  size_t at_ = 0;
  bool is_first_ = true;
};

/// The value of a member, which must be short unless it is a string.
Json parse_member(std::string_view text, const std::string& what) {
  check(text.size() <= kLongestEntry || text[0] == '"', ErrorKind::data,
        "{} is described by {} bytes of JSON, more than {}; the file is damaged or hostile", what,
        text.size(), kLongestEntry);
  return Json::parse(text, what);
}

/// Reads the header tensor by tensor: parsed as a whole, it could take a hundred times its size.
std::vector<HeaderEntry> parse_header(const std::string& path, std::string_view text,
                                      SafetensorsMetadata& metadata) {
  std::vector<HeaderEntry> entries;
  std::unordered_set<std::string> names;
  JsonMembers header(text, path + ": safetensors header");
  std::string name, key;
  std::string_view value;
  while (header.next(name, value)) {
    check(names.insert(name).second, ErrorKind::data, "{}: '{}' appears twice in the header", path,
          name);
    if (name != kMetadataKey) {
      const Json entry = parse_member(value, fmt::format("{}: tensor '{}'", path, name));
      entries.push_back(parse_entry(path, name, entry));
      continue;
    }
    const std::string what = path + ": __metadata__";
    JsonMembers notes(value, what);
    while (notes.next(key, value)) {
      const std::string of_key = fmt::format("{}: '{}'", what, key);
      const bool is_new =
          metadata.emplace(key, parse_member(value, of_key).as_string(of_key)).second;
      check(is_new, ErrorKind::data, "{} appears twice", of_key);
    }
  }
  return entries;
}

/// The tensors must lie end to end and fill the file, so that no byte goes unseen.
void check_places(const std::string& path, const std::vector<HeaderEntry>& entries,
                  int64_t data_start, int64_t file_bytes) {
  int64_t end = 0;
  for (const HeaderEntry& entry : entries) {
    check(entry.begin >= end, ErrorKind::data,
          "{}: tensor '{}' begins at byte {}, inside the tensor before it, which ends at byte {}",
          path, entry.name, static_cast<uint64_t>(data_start) + static_cast<uint64_t>(entry.begin),
          data_start + end);
    check(entry.begin == end, ErrorKind::data,
          "{}: {} bytes before tensor '{}', from byte {}, belong to no tensor", path,
          entry.begin - end, entry.name, data_start + end);
    end = entry.end;
    check(end <= file_bytes - data_start, ErrorKind::data,
          "{}: tensor '{}' ends at byte {} but the file has {}; the download may be cut short",
          path, entry.name, static_cast<uint64_t>(data_start) + static_cast<uint64_t>(end),
          file_bytes);
  }
  check(end == file_bytes - data_start, ErrorKind::data,
        "{}: the tensors end at byte {} but the file has {}; the bytes after them belong to none",
        path, data_start + end, file_bytes);
}

/// The checksum of the data: that of the tensors' checksums, in the order of their names. All
/// threads compute, the largest tensors first, so that none is left with one at the end.
std::string data_checksum(const std::map<std::string, std::span<const std::byte>>& tensors) {
  std::map<std::string_view, std::string> sums;
  std::vector<std::pair<std::span<const std::byte>, std::string*>> order;
  for (const auto& [name, bytes] : tensors) order.emplace_back(bytes, &sums[name]);
  std::ranges::stable_sort(order, std::greater(), [](const auto& o) { return o.first.size(); });
  parallel_for(std::ssize(order), [&](int64_t i) { *order[i].second = checksum(order[i].first); });
  std::string text;
  for (const auto& [name, sum] : sums) text += fmt::format("{} {}\n", name, sum);
  return checksum(text);
}

std::string header_text(const std::vector<NamedTensorView>& tensors, SafetensorsMetadata metadata) {
  std::map<std::string, std::span<const std::byte>> all;
  for (const NamedTensorView& tensor : tensors) all[tensor.name] = tensor.bytes;
  metadata[kChecksumKey] = data_checksum(all);
  Json header = Json::object();
  Json& entries = header[kMetadataKey] = Json::object();
  for (const auto& [key, value] : metadata) entries[key] = value;
  int64_t begin = 0;
  for (const NamedTensorView& tensor : tensors) {
    const int64_t bytes = bytes_of(tensor.dtype, tensor.shape);
    check(bytes == static_cast<int64_t>(tensor.bytes.size()), ErrorKind::internal,
          "safetensors: tensor '{}' of shape [{}] and dtype {} comes with {} bytes", tensor.name,
          fmt::join(tensor.shape, ", "), dtype_text(tensor.dtype), tensor.bytes.size());
    check(!header.contains(tensor.name) && tensor.name != kMetadataKey, ErrorKind::internal,
          "safetensors: the name '{}' is taken", tensor.name);
    Json& entry = header[tensor.name];
    entry["dtype"] = dtype_text(tensor.dtype);
    entry["shape"] = tensor.shape;
    entry["data_offsets"] = std::vector<int64_t>{begin, begin + bytes};
    begin += bytes;
  }
  std::string text = header.dump();
  // So that vectors of the data, which may be used in place, lie in one line of the cache each.
  text.append((64 - (kPrefix + text.size()) % 64) % 64, ' ');
  return text;
}

}  // namespace

SafetensorsFile SafetensorsFile::open(const std::string& path, Mapping mapping) {
  SafetensorsFile file(path);
  file.add_file(std::make_shared<MappedFile>(path, mapping));
  file.read_header();
  return file;
}

void SafetensorsFile::read_header() {
  const std::span<const std::byte> bytes = files()[0]->bytes();
  check(bytes.size() >= kPrefix, ErrorKind::data,
        "{}: {} bytes are too few for a safetensors file; the download may be cut short", path(),
        bytes.size());
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), kPrefix);
  check(length <= bytes.size() - kPrefix, ErrorKind::data,
        "{}: the header claims {} bytes but the file has {}; it is no safetensors file, or the "
        "download was cut short",
        path(), length, bytes.size());
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + kPrefix, length);
  check(text.starts_with('{'), ErrorKind::data,
        "{}: the header does not begin with '{{'; this is no safetensors file", path());
  std::vector<HeaderEntry> entries = parse_header(path(), text, metadata_);
  std::ranges::sort(entries, {},
                    [](const HeaderEntry& e) { return std::tie(e.begin, e.end, e.name); });
  const std::span<const std::byte> data = bytes.subspan(kPrefix + length);
  check_places(path(), entries, static_cast<int64_t>(kPrefix + length),
               static_cast<int64_t>(bytes.size()));
  for (HeaderEntry& entry : entries) {
    const auto place = data.subspan(static_cast<size_t>(entry.begin),
                                    static_cast<size_t>(entry.end - entry.begin));
    add(std::move(entry.name), {entry.dtype, std::move(entry.shape), place});
  }
}

void SafetensorsFile::verify() const {
  const auto stored = metadata_.find(kChecksumKey);
  if (stored == metadata_.end()) return;
  std::map<std::string, std::span<const std::byte>> all;
  for (const std::string& name : names()) all[name] = info(name).bytes;
  const std::string sum = data_checksum(all);
  check(sum == stored->second, ErrorKind::data,
        "{}: the tensors have checksum {} but {} was saved; the file was altered or damaged",
        path(), sum, stored->second);
}

void write_safetensors(const std::string& path, std::vector<NamedTensorView> tensors,
                       const SafetensorsMetadata& metadata) {
  std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
    if (a.is_first != b.is_first) return a.is_first;
    const int64_t size_a = size_of(a.dtype), size_b = size_of(b.dtype);
    if (size_a != size_b) return size_a > size_b;
    return std::tie(a.place.empty() ? a.name : a.place, a.name) <
           std::tie(b.place.empty() ? b.name : b.place, b.name);
  });
  const std::string header = header_text(tensors, metadata);
  write_file_atomic(path, [&](const ByteSink& sink) {
    const uint64_t length = header.size();
    sink(std::as_bytes(std::span(&length, 1)));
    sink(std::as_bytes(std::span(header)));
    for (const NamedTensorView& tensor : tensors) sink(tensor.bytes);
  });
}

}  // namespace heddle
