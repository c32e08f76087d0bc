// Tensors in a file: the safetensors format, memory-mapped for reading, streamed for writing.
// Source: github.com/huggingface/safetensors, README "Format".
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "heddle/base/mmap.h"
#include "heddle/tensor/dtype.h"
#include "heddle/tensor/tensor.h"

namespace heddle {

/// The metadata key under which write_safetensors() leaves the checksum of the data.
inline constexpr const char* kChecksumKey = "heddle_xxh64";

/// Free text that travels in the header ("format": "pt").
using SafetensorsMetadata = std::map<std::string, std::string>;

/// A tensor in a safetensors file.
struct SafetensorsInfo {
  DType dtype = DType::f32;
  std::vector<int64_t> shape;        ///< empty for a scalar
  std::span<const std::byte> bytes;  ///< row-major, little-endian; valid while the file is open,
                                     ///< and aligned to nothing: copy with memcpy, or see
                                     ///< SafetensorsFile::in_place()

  int64_t elements() const { return static_cast<int64_t>(bytes.size()) / size_of(dtype); }
};

/// The tensors of a file. Nothing is read but the header until the bytes are touched.
class SafetensorsFile {
 public:
  /// Opens a file and checks all of its header: the sizes of tensors against their shapes, and that
  /// they lie end to end and fill the file. With Mapping::own_copy tensors can be used in_place().
  /// Errors: data, naming the path, the tensor and byte counts, for anything else; system if the
  /// file cannot be read.
  static SafetensorsFile open(const std::string& path, Mapping mapping = Mapping::read_only);

  const std::string& path() const { return file_->path(); }
  /// Bytes of the whole file.
  size_t size() const { return file_->size(); }
  /// All names, in the order of their bytes in the file.
  const std::vector<std::string>& names() const { return names_; }
  bool contains(std::string_view name) const { return find(name) != nullptr; }
  /// Elements of all tensors together.
  int64_t elements() const;
  /// A tensor. Errors: data, proposing the nearest name, if there is none of that name.
  const SafetensorsInfo& info(std::string_view name) const;
  /// A tensor, or nullptr.
  const SafetensorsInfo* find(std::string_view name) const;
  const SafetensorsMetadata& metadata() const { return metadata_; }
  /// Bytes of this file, those of a tensor or of several that lie end to end, as a tensor of this
  /// shape without a copy. It outlives this object, and the file's name. Writing to it changes this
  /// process's memory, never the file. Undefined, so that the caller must copy, where the file is
  /// mapped read only or the bytes are not aligned to their elements.
  Tensor in_place(std::span<const std::byte> bytes, const Shape& shape, DType dtype) const;
  /// Compares the data with the checksum that write_safetensors() left in the metadata, by reading
  /// all of it on all threads; files of other programs have none and pass.
  /// Errors: data if the data was altered or damaged.
  void verify() const;

 private:
  explicit SafetensorsFile(std::shared_ptr<MappedFile> file) : file_(std::move(file)) {}
  void read_header();

  std::shared_ptr<MappedFile> file_;  // shared with tensors in place
  std::vector<std::string> names_;
  std::unordered_map<std::string, SafetensorsInfo> tensors_;
  SafetensorsMetadata metadata_;
};

/// A tensor to be written; it refers to the caller's bytes.
struct NamedTensorView {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape = {};
  std::span<const std::byte> bytes = {};  ///< row-major, little-endian
  std::string place = {};                 ///< stands for the name in the order of the bytes
};

/// Writes a file, atomically and straight from the views. The bytes depend on the content only, not
/// on the order of `tensors`: as Hugging Face does, larger elements come first, then by name (or
/// place), so that each tensor is aligned to its elements; the first is aligned to a line of the
/// cache. The metadata gains a checksum of the data, for
/// SafetensorsFile::verify().
/// Errors: internal for a repeated name or bytes that do not fit the shape; system for a full disk
/// or no permission (an older file of that path is then untouched).
void write_safetensors(const std::string& path, std::vector<NamedTensorView> tensors,
                       const SafetensorsMetadata& metadata = {});

}  // namespace heddle
