// Building and opening the cache of decoded images, and the format of its file.
#include "heddle/data/image_cache.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <optional>
#include <type_traits>
#include <utility>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/base/files/mmap.h"
#include "heddle/base/json/json.h"
#include "heddle/base/log.h"
#include "heddle/base/parallel.h"
#include "heddle/base/profile.h"
#include "heddle/base/progress.h"
#include "heddle/vision/resize.h"

namespace heddle {
namespace {

// --- the file: written as a stream, checked when opened ---

/// Last bytes of a cache file. Layout of the file, in the byte order of the machine; zeros up to 8
/// bytes behind each part:
///   pixels  uint8: image after image, [height, width, channels] each
///   images  ImageRecord[images + 1]; of the last only where its pixels and name would begin
///   names   UTF-8, end to end
///   about   JSON: {"labels": [..], "left_out": images that could not be read, "faults": [..]}
///   footer  this struct
struct ImageFooter {
  uint64_t magic = 0;
  uint64_t key = 0;
  int64_t images = 0;
  int64_t channels = 0;
  int64_t pixel_bytes = 0, name_bytes = 0, about_bytes = 0;
  uint64_t pixel_hash = 0;   ///< see hash_blocks()
  uint64_t index_hash = 0;   ///< of what lies between pixels and footer
  uint64_t footer_hash = 0;  ///< of the fields above
};

struct ImageRecord {
  uint64_t pixels = 0, name = 0;  ///< where they begin
  int32_t height = 0, width = 0, label = 0;
  int32_t original_height = 0, original_width = 0, unused = 0;
};

constexpr uint64_t kMagic = 0x3267616d69746468u;  // "hdtimag2"
constexpr size_t kFooter = sizeof(ImageFooter);
constexpr std::string_view kEnding = ".images";
constexpr uint64_t kMostHashed = uint64_t{4} << 30;

static_assert(std::is_trivially_copyable_v<ImageFooter> && kFooter == 10 * sizeof(int64_t) &&
                  std::is_trivially_copyable_v<ImageRecord> && sizeof(ImageRecord) == 40,
              "they are stored as they lie in memory, without gaps");

uint64_t footer_hash(const ImageFooter& footer) {
  return xxh64(std::as_bytes(std::span(&footer, 1)).first(offsetof(ImageFooter, footer_hash)));
}

/// A cache file that was found to be whole.
struct ImageFileView {
  MappedFile file;
  ImageFooter footer = {};
  const uint8_t* pixels = nullptr;
  std::span<const ImageRecord> records = {};  // [images + 1]
  std::string_view names = {}, about = {};
};

/// Points the view at its parts; what is wrong with the sizes, or "".
std::string lay_out(ImageFileView& view, uint64_t key) {
  const std::span<const std::byte> bytes = view.file.bytes();
  if (bytes.size() < kFooter || bytes.size() % 8 != 0) return "it was cut short or is no cache";
  std::memcpy(&view.footer, bytes.data() + bytes.size() - kFooter, kFooter);
  const ImageFooter& footer = view.footer;
  if (footer.magic != kMagic) return "it was cut short or is no cache";
  if (footer.footer_hash != footer_hash(footer)) return "its footer was altered";
  if (footer.key != key) return "it belongs to other images";
  // Bounds before sums: a forged footer may hold any number.
  const auto limit = static_cast<int64_t>(bytes.size());
  for (const int64_t size :
       {footer.images, footer.pixel_bytes, footer.name_bytes, footer.about_bytes}) {
    if (size < 0 || size > limit) return "its sizes make no sense";
  }
  if (footer.channels != 1 && footer.channels != 3) return "its sizes make no sense";
  const auto images = static_cast<size_t>(footer.images);
  const size_t pixels = round_up_8(static_cast<size_t>(footer.pixel_bytes)),
               records = (images + 1) * sizeof(ImageRecord),
               names = round_up_8(static_cast<size_t>(footer.name_bytes)),
               about = round_up_8(static_cast<size_t>(footer.about_bytes));
  if (bytes.size() != pixels + records + names + about + kFooter) {
    return "its size is not what its footer says";
  }
  const auto* begin = reinterpret_cast<const char*>(bytes.data());
  view.pixels = reinterpret_cast<const uint8_t*>(begin);
  view.records = {reinterpret_cast<const ImageRecord*>(begin + pixels), images + 1};
  view.names = {begin + pixels + records, static_cast<size_t>(footer.name_bytes)};
  view.about = {begin + pixels + records + names, static_cast<size_t>(footer.about_bytes)};
  return "";
}

/// Every image and name lies inside its part: holds for each file that heddle wrote, checked so
/// that no file at all can make a reader leave the mapping.
bool are_records_sound(const ImageFileView& view, size_t labels) {
  const ImageRecord& last = view.records.back();
  const bool is_whole = view.records[0].pixels == 0 && view.records[0].name == 0 &&
                        last.pixels == static_cast<uint64_t>(view.footer.pixel_bytes) &&
                        last.name == view.names.size();
  if (!is_whole) return false;
  for (size_t i = 0; i + 1 < view.records.size(); ++i) {
    const ImageRecord &image = view.records[i], &next = view.records[i + 1];
    if (image.height <= 0 || image.width <= 0 || image.label < 0) return false;
    if (image.original_height < image.height || image.original_width < image.width) return false;
    if (static_cast<size_t>(image.label) >= labels || next.name < image.name) return false;
    const uint64_t pixels = static_cast<uint64_t>(image.height) *
                            static_cast<uint64_t>(image.width) *
                            static_cast<uint64_t>(view.footer.channels);
    if (next.pixels < image.pixels || next.pixels - image.pixels != pixels) return false;
  }
  return true;
}

struct About {
  std::vector<std::string> labels;
  int64_t left_out = 0;
  std::vector<std::string> faults;  // the first ones
};

/// Opens a cache file and checks it. Returns nothing, and in `fault` what is wrong, if it is not
/// exactly as written. Errors: system if it cannot be read.
std::optional<ImageFileView> open_image_file(const std::string& path, uint64_t key, About& about,
                                             std::string& fault) {
  fault = "it is empty";
  if (file_size(path) == 0) return std::nullopt;
  ImageFileView view{.file = MappedFile(path)};
  fault = lay_out(view, key);
  if (!fault.empty()) return std::nullopt;
  fault = "its contents were altered";
  const std::span<const std::byte> bytes = view.file.bytes();
  const size_t pixels = round_up_8(static_cast<size_t>(view.footer.pixel_bytes));
  const auto index = bytes.subspan(pixels, bytes.size() - kFooter - pixels);
  if (hash_blocks(index) != view.footer.index_hash) return std::nullopt;
  if (pixels <= kMostHashed && hash_blocks(bytes.first(pixels)) != view.footer.pixel_hash) {
    return std::nullopt;
  }
  const Json json = Json::parse(std::string(view.about));
  about.labels = json.at("labels").as_strings(path);
  about.left_out = json.get_int("left_out", path);
  about.faults = json.at("faults").as_strings(path);
  if (!are_records_sound(view, about.labels.size())) return std::nullopt;
  return view;
}

// --- making it ---

// What is decoded at once: at most so many images, or bytes of files and one image.
constexpr size_t kBlockImages = 256;
constexpr int64_t kBlockBytes = int64_t{8} << 20;
constexpr size_t kMostFaults = 5;  // that are told

uint64_t cache_key(const ImageSource& source, int64_t edge) {
  const std::string text =
      fmt::format("heddle images 2\nedge {}\nchannels {}\n{}\n{}", edge, source.channels,
                  fmt::join(source.labels, "\n"), source.content);
  return xxh64(std::as_bytes(std::span(text)));
}

// Grey images are resized as such by being resized in three channels.
DecodedImage shrunk(DecodedImage image, int64_t channels, int64_t edge) {
  const auto [height, width] = image.size;
  const int64_t shorter = std::min(height, width), longer = std::max(height, width);
  if (edge == 0 || shorter <= edge) return image;
  const auto other = static_cast<int64_t>(static_cast<double>(edge) * static_cast<double>(longer) /
                                          static_cast<double>(shorter));
  const ImageSize to = height < width ? ImageSize{edge, other} : ImageSize{other, edge};
  const Image small = resize(ImageView{image.pixels.data(), image.size, channels}.rgb(), to.height,
                             to.width, Resample::bilinear);
  image.size = to;
  image.pixels.clear();
  for (size_t i = 0; i < small.pixels.size(); i += 3) {
    for (int64_t c = 0; c < channels; ++c) image.pixels.push_back(small.pixels[i + c]);
  }
  return image;
}

// An image, or why there is none.
struct Decoded {
  DecodedImage image;
  ImageSize original;
  std::string fault;
};

Decoded decode(const ImageSource& source, size_t i, int64_t edge) {
  Decoded result;
  try {
    DecodedImage image = source.decode(i, source.path(i));
    result.original = image.size;
    result.image = shrunk(std::move(image), source.channels, edge);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::data) throw;
    result.fault = error.what();
  }
  return result;
}

/// Writes a cache file through a sink, image by image. Memory: 40 bytes an image, its name, and two
/// blocks.
class ImageWriter {
 public:
  ImageWriter(const ByteSink& sink, int64_t channels)
      : sink_(sink), pixels_(sink), index_(sink), channels_(channels) {}

  void add(const Decoded& one, const ImageSource::Entry& entry) {
    const DecodedImage& image = one.image;
    records_.push_back({.pixels = pixels_.size(),
                        .name = names_.size(),
                        .height = static_cast<int32_t>(image.size.height),
                        .width = static_cast<int32_t>(image.size.width),
                        .label = entry.label,
                        .original_height = static_cast<int32_t>(one.original.height),
                        .original_width = static_cast<int32_t>(one.original.width)});
    pixels_.put(image.pixels.data(), image.pixels.size());
    names_ += entry.name;
  }

  void finish(uint64_t key, const About& about) {
    const std::string text =
        Json::object(
            {{"labels", about.labels}, {"left_out", about.left_out}, {"faults", about.faults}})
            .dump();
    ImageFooter footer{.magic = kMagic,
                       .key = key,
                       .images = std::ssize(records_),
                       .channels = channels_,
                       .pixel_bytes = static_cast<int64_t>(pixels_.size()),
                       .name_bytes = std::ssize(names_),
                       .about_bytes = std::ssize(text)};
    records_.push_back({.pixels = pixels_.size(), .name = names_.size()});
    pixels_.pad();
    footer.pixel_hash = pixels_.finish();
    index_.put(records_.data(), records_.size() * sizeof(ImageRecord));
    for (const std::string& part : {names_, text}) {
      index_.put(part.data(), part.size());
      index_.pad();
    }
    footer.index_hash = index_.finish();
    footer.footer_hash = footer_hash(footer);
    sink_(std::as_bytes(std::span(&footer, 1)));
  }

 private:
  const ByteSink& sink_;
  HashedWriter pixels_, index_;
  int64_t channels_;
  std::vector<ImageRecord> records_;
  std::string names_;
};

size_t end_of_block(const ImageSource& source, size_t begin) {
  size_t end = begin;
  for (int64_t bytes = 0; end < source.entries.size() && end - begin < kBlockImages; ++end) {
    bytes += source.entries[end].bytes;
    if (bytes > kBlockBytes && end > begin) break;
  }
  return end;
}

void build(const ImageSource& source, int64_t edge, uint64_t key, const std::string& path) {
  write_file_atomic(path, [&](const ByteSink& sink) {
    ImageWriter writer(sink, source.channels);
    About about;
    about.labels = source.labels;
    Progress progress("decoding");
    const size_t count = source.entries.size();
    for (size_t begin = 0, end = 0; begin < count; begin = end) {
      end = end_of_block(source, begin);
      std::vector<Decoded> block(end - begin);
      parallel_for(std::ssize(block), [&](int64_t i) {
        block[static_cast<size_t>(i)] = decode(source, begin + static_cast<size_t>(i), edge);
      });
      for (size_t i = begin; i < end; ++i) {
        const Decoded& one = block[i - begin];
        if (one.fault.empty()) {
          writer.add(one, source.entries[i]);
        } else if (about.left_out++ < static_cast<int64_t>(kMostFaults)) {
          about.faults.push_back(printable(one.fault));  // names may be of any bytes
        }
      }
      if (progress.is_due()) {
        progress.update(static_cast<double>(end) / static_cast<double>(count),
                        counted(static_cast<int64_t>(end), "image"));
      }
    }
    check(about.left_out < static_cast<int64_t>(count), ErrorKind::data,
          "{}: none of {} can be read; the first: {}", source.root,
          counted(static_cast<int64_t>(count), "image"),
          about.faults.empty() ? "" : about.faults.front());
    writer.finish(key, about);
  });
}

// Of "NAME-KEY.images" NAME and KEY.
struct CacheName {
  std::string_view name, key;

  explicit CacheName(std::string_view file) {
    constexpr size_t kDigits = 16;
    if (!file.ends_with(kEnding)) return;
    file.remove_suffix(kEnding.size());
    const size_t dash = file.rfind('-');
    if (dash == file.npos || file.size() != dash + 1 + kDigits) return;
    name = file.substr(0, dash), key = file.substr(dash + 1);
  }
};

bool is_whole_cache(const std::string& path, std::string_view key) {
  uint64_t number = 0;
  const char* const end = key.data() + key.size();
  const auto [stop, fault] = std::from_chars(key.data(), end, number, 16);
  if (fault != std::errc() || stop != end || is_directory(path) || file_size(path) == 0) {
    return false;
  }
  ImageFileView view{.file = MappedFile(path)};
  return lay_out(view, number).empty();
}

void warn_of_faults(const std::string& root, const About& about) {
  if (about.left_out == 0) return;
  const auto more = about.left_out - std::ssize(about.faults);
  log_warning("{}: left out: {} that cannot be read: {}{}", root, counted(about.left_out, "image"),
              fmt::join(about.faults, "; "), more > 0 ? fmt::format("; and {} more", more) : "");
}

}  // namespace

Image ImageView::rgb() const {
  Image image(size.height, size.width);
  if (channels == Image::kChannels) {
    std::copy_n(pixels, image.pixels.size(), image.pixels.begin());
  } else {
    for (size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = pixels[i / 3];
  }
  return image;
}

struct ImageCache::Impl {
  ImageFileView view;
  std::vector<std::string> labels;
  std::string key;
};

ImageCache ImageCache::open_or_build(const ImageSource& source, const ImageCacheOptions& options,
                                     const CacheLog& log) {
  const ProfilePhase phase("decode images");
  const uint64_t key = cache_key(source, options.edge);
  const std::string path =
      join_path(options.folder, fmt::format("{}-{:016x}{}", options.name, key, kEnding));
  make_directories(options.folder);
  remove_leftovers(options.folder, options.name + "-");
  About about;
  const auto open = [&](std::string& fault) { return open_image_file(path, key, about, fault); };
  ImageFileView view = open_or_build_cache(path, log, open, [&] {
    const auto start = std::chrono::steady_clock::now();
    build(source, options.edge, key, path);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    if (log) log(fmt::format("{}: decoded in {:.1f} s", options.name, seconds.count()));
  });
  warn_of_faults(source.root, about);
  const uint64_t content[] = {view.footer.pixel_hash, view.footer.index_hash};
  std::string content_key = fmt::format("{:016x}", xxh64(std::as_bytes(std::span(content))));
  return ImageCache(std::make_shared<const Impl>(
      Impl{std::move(view), std::move(about.labels), std::move(content_key)}));
}

int64_t ImageCache::size() const { return impl_->view.footer.images; }
int64_t ImageCache::channels() const { return impl_->view.footer.channels; }

ImageView ImageCache::image(int64_t i) const {
  const ImageRecord& record = impl_->view.records[static_cast<size_t>(i)];
  return {impl_->view.pixels + record.pixels, {record.height, record.width}, channels()};
}

ImageSize ImageCache::original_size(int64_t i) const {
  const ImageRecord& record = impl_->view.records[static_cast<size_t>(i)];
  return {record.original_height, record.original_width};
}

int32_t ImageCache::label(int64_t i) const {
  return impl_->view.records[static_cast<size_t>(i)].label;
}

std::string_view ImageCache::name(int64_t i) const {
  const auto at = static_cast<size_t>(i);
  const uint64_t begin = impl_->view.records[at].name;
  return impl_->view.names.substr(begin, impl_->view.records[at + 1].name - begin);
}

const std::vector<std::string>& ImageCache::labels() const { return impl_->labels; }
const std::string& ImageCache::key() const { return impl_->key; }
const std::string& ImageCache::path() const { return impl_->view.file.path(); }

void remove_other_caches(const std::string& path) {
  const std::string folder = parent_path(path);
  if (std::filesystem::is_symlink(folder)) return;  // others may keep theirs there
  const std::string file = path.substr(path.rfind('/') + 1);
  const CacheName own(file);
  for (const std::string& entry : list_directory(folder)) {
    const CacheName other(entry);
    const std::string there = join_path(folder, entry);
    const bool is_alike = other.name == own.name && other.key != own.key;
    if (is_alike && is_whole_cache(there, other.key)) remove_path(there);
  }
}

std::vector<size_t> cached_entries(const ImageSource& source, const ImageCache& cache,
                                   const std::string& file) {
  std::vector<size_t> entries;
  size_t entry = 0;
  for (int64_t i = 0; i < cache.size(); ++i, ++entry) {
    const size_t count = source.entries.size();
    while (entry < count && source.entries[entry].name != cache.name(i)) ++entry;
    check(entry < count, ErrorKind::data, "{}: has no image '{}' of its cache, {}", file,
          cache.name(i), cache.path());
    entries.push_back(entry);
  }
  return entries;
}

}  // namespace heddle
