// The three formats: what a file holds is checked in whole before the first image is decoded.
#include "heddle/data/packed_images.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "heddle/base/error.h"
#include "heddle/base/files/file_bytes.h"
#include "heddle/base/files/files.h"
#include "heddle/base/files/lines.h"
#include "heddle/io/byte_reader.h"

namespace heddle {
namespace {

using Bytes = std::span<const std::byte>;

// What the formats have in common: images that lie somewhere in files.
struct Packs {
  ImageSource source;
  std::vector<std::shared_ptr<const void>> owners;
  std::vector<Bytes> places;

  void open(const FileBytes& file) {
    owners.push_back(file.owner);
    source.content += fmt::format("{} {}\n", file.bytes.size(), checksum(file.bytes));
  }
  void add(const std::string& name, size_t number, int32_t label, Bytes image) {
    source.entries.push_back(
        {fmt::format("{}: image {}", name, number), label, static_cast<int64_t>(image.size())});
    places.push_back(image);
  }
  // decode_bytes(image, path) decodes an image.
  template <class F>
  ImageSource finish(const F& decode_bytes) {
    source.decode = [kept = owners, where = places, decode_bytes](
                        size_t i, const std::string& path) { return decode_bytes(where[i], path); };
    return std::move(source);
  }
};

// Lines of the first of these files that is there, without blank ones.
std::vector<std::string> label_names(const std::string& folder,
                                     std::initializer_list<const char*> files) {
  std::vector<std::string> names;
  for (const char* file : files) {
    if (!path_exists(join_path(folder, file))) continue;
    LineReader reader(join_path(folder, file));
    for (std::string line; reader.next(line);) {
      reader.check_utf8(line);
      line.erase(line.find_last_not_of(" \t") + 1);
      if (!line.empty()) names.push_back(line);
    }
    break;
  }
  return names;
}

// Every label has a name: those of a file, else numbers.
void name_labels(Packs& packs, const std::vector<std::string>& names) {
  packs.source.labels = names;
  for (const ImageSource::Entry& entry : packs.source.entries) {
    const auto count = static_cast<int32_t>(packs.source.labels.size());
    check(entry.label < count || names.empty(), ErrorKind::data,
          "{}: {} has the label {}; {} classes have names, from 0 on", packs.source.root,
          entry.name, entry.label, count);
    for (int32_t label = count; label <= entry.label; ++label) {
      packs.source.labels.push_back(std::to_string(label));
    }
  }
  packs.source.content += fmt::format("{}\n", fmt::join(packs.source.labels, "\n"));
}

DecodedImage plain(Bytes pixels, ImageSize size) {
  const auto* begin = reinterpret_cast<const uint8_t*>(pixels.data());
  return {size, {begin, begin + pixels.size()}};
}

// --- JPEG without what all files have in common ---

void add_jpegs(Packs& packs, const std::string& name) {
  const FileBytes file(join_path(packs.source.root, name));
  packs.open(file);
  ByteReader reader(file.bytes, file.path);
  check(reader.remaining() >= 8 && reader.text(4) == "JPK1", ErrorKind::data,
        "{}: does not begin as a .jpack file does", file.path);
  const auto count = reader.read<uint32_t>();
  for (uint32_t i = 0; i < count; ++i) {
    const auto label = reader.read<uint8_t>();
    const auto size = reader.read<uint16_t>();
    packs.add(name, i, label, reader.take(size));
  }
  check(reader.remaining() == 0, ErrorKind::data, "{}: {} bytes stand behind the last of {} images",
        file.path, reader.remaining(), count);
}

ImageSource read_jpegs(Packs packs, const std::vector<std::string>& names) {
  const std::string& folder = packs.source.root;
  const std::string header = read_file(join_path(folder, "jpeg_header.bin"));
  packs.source.content += fmt::format("jpack {}\n", checksum(header));
  for (const std::string& name : names) add_jpegs(packs, name);
  name_labels(packs, label_names(folder, {"classes.txt"}));
  return packs.finish([header](Bytes bytes, const std::string& path) {
    std::string file = header;
    file.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    Image image = decode_image(std::as_bytes(std::span(file)), path);
    return DecodedImage{image.size(), std::move(image.pixels)};
  });
}

// --- IDX: numbers in big-endian order, then bytes ---

std::string labels_of(std::string images) {
  images.replace(images.rfind("images"), 6, "labels");
  const size_t rank = images.rfind("idx3");
  if (rank != images.npos) images[rank + 3] = '1';
  return images;
}

// The sizes that an IDX file of so many dimensions begins with; behind them is what they say.
std::vector<int64_t> idx_sizes(const FileBytes& file, size_t rank) {
  const auto number = [&](size_t at) {
    uint32_t value = 0;
    for (size_t i = 0; i < 4; ++i) {
      value = value << 8 | std::to_integer<uint32_t>(file.bytes[4 * at + i]);
    }
    return int64_t{value};
  };
  check(file.bytes.size() >= 4 * (rank + 1) && number(0) == static_cast<int64_t>(0x800 + rank),
        ErrorKind::data, "{}: does not begin as an IDX file of bytes in {} dimensions does",
        file.path, rank);
  std::vector<int64_t> sizes;
  const auto rest = static_cast<int64_t>(file.bytes.size() - 4 * (rank + 1));
  int64_t expected = 1;
  for (size_t i = 0; i < rank; ++i) {
    sizes.push_back(number(i + 1));
    // Of no more than the file has, so that the product cannot overflow.
    expected = sizes[i] == 0 ? 0 : expected > rest / sizes[i] ? rest + 1 : expected * sizes[i];
  }
  check(expected == rest && rest > 0, ErrorKind::data,
        "{}: its header says {} values, and {} bytes follow it; was it cut short?", file.path,
        fmt::join(sizes, " x "), rest);
  return sizes;
}

ImageSource read_idx(Packs packs, const std::string& name) {
  const FileBytes images(join_path(packs.source.root, name)),
      labels(join_path(packs.source.root, labels_of(name)));
  packs.source.content += "idx\n";
  packs.open(images);
  packs.open(labels);
  const std::vector<int64_t> sizes = idx_sizes(images, 3), count = idx_sizes(labels, 1);
  check(sizes[0] == count[0], ErrorKind::data, "{} has {} images, {} has {} labels", images.path,
        sizes[0], labels.path, count[0]);
  const ImageSize size = {sizes[1], sizes[2]};
  const auto bytes = static_cast<size_t>(size.height * size.width);
  for (size_t i = 0; i < static_cast<size_t>(sizes[0]); ++i) {
    packs.add(name, i, std::to_integer<int32_t>(labels.bytes[8 + i]),
              images.bytes.subspan(16 + i * bytes, bytes));
  }
  name_labels(packs, {});
  packs.source.channels = 1;
  return packs.finish([size](Bytes pixels, const std::string&) { return plain(pixels, size); });
}

// --- CIFAR: one label or two, then 1024 values each of red, green, blue ---

constexpr size_t kPlane = 32 * 32;

DecodedImage interleaved(Bytes planes) {
  DecodedImage image{{32, 32}, std::vector<uint8_t>(3 * kPlane)};
  for (size_t i = 0; i < kPlane; ++i) {
    for (size_t c = 0; c < 3; ++c) {
      image.pixels[3 * i + c] = std::to_integer<uint8_t>(planes[c * kPlane + i]);
    }
  }
  return image;
}

bool is_batch_of_ten(const std::string& name) {
  return name.starts_with("data_batch") || name.starts_with("test_batch");
}

ImageSource read_cifar(Packs packs, const std::vector<std::string>& names) {
  const std::string& folder = packs.source.root;
  size_t label_bytes = 0;
  for (const std::string& name : names) {
    const FileBytes file(join_path(folder, name));
    packs.open(file);
    const size_t size = file.bytes.size(), ten = 3 * kPlane + 1;
    const bool is_of_ten = size % ten == 0, is_of_hundred = size % (ten + 1) == 0;
    check(size > 0 && (is_of_ten || (is_of_hundred && !is_batch_of_ten(name))), ErrorKind::data,
          "{}: has {} bytes; an image and its label have {} in CIFAR-10, {} in CIFAR-100. Was it "
          "cut short?",
          file.path, size, ten, ten + 1);
    label_bytes = is_of_ten ? 1 : 2;
    const size_t record = 3 * kPlane + label_bytes;
    for (size_t i = 0; i < size / record; ++i) {
      const Bytes one = file.bytes.subspan(i * record, record);
      packs.add(name, i, std::to_integer<int32_t>(one[label_bytes - 1]), one.subspan(label_bytes));
    }
  }
  packs.source.content += fmt::format("cifar {}\n", label_bytes);
  std::vector<std::string> labels =
      label_names(folder, {"batches.meta.txt", "fine_label_names.txt"});
  for (int label = 0; labels.empty() && label < (label_bytes == 1 ? 10 : 100); ++label) {
    packs.source.labels.push_back(std::to_string(label));
  }
  name_labels(packs, labels.empty() ? packs.source.labels : labels);
  return packs.finish([](Bytes planes, const std::string&) { return interleaved(planes); });
}

}  // namespace

PackKind pack_kind(const std::string& name) {
  const std::string plain_name = name.ends_with(".gz") ? name.substr(0, name.size() - 3) : name;
  if (plain_name.ends_with(".jpack")) return PackKind::jpeg;
  if (plain_name.ends_with(".bin") && plain_name != "jpeg_header.bin") return PackKind::cifar;
  const bool is_idx = plain_name.find("images") != name.npos && plain_name.ends_with("ubyte");
  return is_idx ? PackKind::idx : PackKind::none;
}

ImageSource read_packs(PackKind kind, const std::string& folder,
                       const std::vector<std::string>& names) {
  Packs packs;
  packs.source.root = folder;
  if (kind == PackKind::jpeg) return read_jpegs(std::move(packs), names);
  if (kind == PackKind::cifar) return read_cifar(std::move(packs), names);
  check(names.size() == 1, ErrorKind::data, "{}: {} are all there, and one is needed; name it",
        folder, fmt::join(names, ", "));
  return read_idx(std::move(packs), names[0]);
}

}  // namespace heddle
