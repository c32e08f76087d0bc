// Tensors in a file: the safetensors format, memory-mapped for reading, streamed for writing.
// Source: github.com/huggingface/safetensors, README "Format".
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "heddle/io/tensor_file.h"

namespace heddle {

/// The metadata key under which write_safetensors() leaves the checksum of the data.
inline constexpr const char* kChecksumKey = "heddle_xxh64";

/// Free text that travels in the header ("format": "pt").
using SafetensorsMetadata = std::map<std::string, std::string>;

/// The tensors of a file. Nothing is read but the header until the bytes are touched.
class SafetensorsFile : public TensorFile {
 public:
  /// Opens a file and checks all of its header: the sizes of tensors against their shapes, and that
  /// they lie end to end and fill the file. With Mapping::own_copy tensors can be used in_place().
  /// Errors: data, naming the path, the tensor and byte counts, for anything else; system if the
  /// file cannot be read.
  static SafetensorsFile open(const std::string& path, Mapping mapping = Mapping::read_only);

  /// Bytes of the whole file.
  size_t size() const { return files()[0]->size(); }
  const SafetensorsMetadata& metadata() const { return metadata_; }
  /// Compares the data with the checksum that write_safetensors() left in the metadata; files of
  /// other programs have none and pass.
  void verify() const override;

 private:
  using TensorFile::TensorFile;
  void read_header();

  SafetensorsMetadata metadata_;
};

/// A tensor to be written; it refers to the caller's bytes.
struct NamedTensorView {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape = {};
  std::span<const std::byte> bytes = {};  ///< row-major, little-endian
  std::string place = {};                 ///< stands for the name in the order of the bytes
  bool is_first = false;                  ///< comes before those that do not say so
};

/// Writes a file, atomically and straight from the views. The bytes depend on the content only, not
/// on the order of `tensors`: as Hugging Face does, larger elements come first, then by name (or
/// place), so that each tensor is aligned to its elements; the first is aligned to a line of the
/// cache, and so are those behind it that
/// are to come first, if each is as many bytes as whole lines. The metadata gains a checksum of the
/// data, for SafetensorsFile::verify(). Errors: internal for a repeated name or bytes that do not
/// fit the shape; system for a full disk or no permission (an older file of that path is then
/// untouched).
void write_safetensors(const std::string& path, std::vector<NamedTensorView> tensors,
                       const SafetensorsMetadata& metadata = {});

}  // namespace heddle
