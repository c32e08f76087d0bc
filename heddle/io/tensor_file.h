// Named tensors in files that are mapped into memory: what loading sees, whatever the format; the
// weights of a model directory, in whichever files Hugging Face keeps them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "heddle/base/files/mmap.h"
#include "heddle/tensor/dtype.h"
#include "heddle/tensor/tensor.h"

namespace heddle {

/// A tensor in a file.
struct StoredTensor {
  DType dtype = DType::f32;
  std::vector<int64_t> shape;        ///< empty for a scalar
  std::span<const std::byte> bytes;  ///< row-major, little-endian; valid while the file is open,
                                     ///< and aligned to nothing: copy with memcpy, or see
                                     ///< TensorFile::in_place()

  int64_t elements() const { return static_cast<int64_t>(bytes.size()) / size_of(dtype); }
  /// Its values, whatever the dtype.
  std::vector<float> floats() const;
};

/// The tensors of one file, or of the shards of one checkpoint. Opening reads only where they lie.
class TensorFile {
 public:
  virtual ~TensorFile() = default;

  /// The file, or the index of the shards.
  const std::string& path() const { return path_; }
  /// All names, in the order of their bytes.
  const std::vector<std::string>& names() const { return names_; }
  bool contains(std::string_view name) const { return find(name) != nullptr; }
  /// Elements of all tensors together.
  int64_t elements() const;
  /// A tensor. Errors: data, proposing the nearest name, if there is none of that name.
  const StoredTensor& info(std::string_view name) const;
  /// A tensor, or nullptr.
  const StoredTensor* find(std::string_view name) const;
  /// Bytes of a file, those of a tensor or of several that lie end to end, as a tensor of this
  /// shape without a copy. It outlives this object, and the file's name. Writing to it changes this
  /// process's memory, never the file. Undefined, so that the caller must copy, where the file is
  /// mapped read only, the bytes are not aligned to their elements, or they lie in no file.
  Tensor in_place(std::span<const std::byte> bytes, const Shape& shape, DType dtype) const;
  /// Compares the data with the checksums that the files hold, by reading all of it on all threads;
  /// what has none passes. Errors: data if the data was altered or damaged.
  virtual void verify() const = 0;

 protected:
  explicit TensorFile(std::string path) : path_(std::move(path)) {}
  TensorFile(TensorFile&&) = default;
  TensorFile& operator=(TensorFile&&) = default;

  /// Errors: data if the name is taken, or the tensor has more axes than a Shape.
  void add(std::string name, StoredTensor tensor);
  /// The file that later tensors lie in.
  void add_file(std::shared_ptr<MappedFile> file) { files_.push_back(std::move(file)); }
  const std::vector<std::shared_ptr<MappedFile>>& files() const { return files_; }
  /// The files of a shard, for tensors in place.
  void add_files_of(const TensorFile& shard);

 private:
  std::string path_;
  std::vector<std::shared_ptr<MappedFile>> files_;  // shared with tensors in place
  std::vector<std::string> names_;
  std::unordered_map<std::string, StoredTensor> tensors_;
};

/// Bytes of a tensor of this shape, or -1 if a size is negative or the product does not fit.
int64_t bytes_of(DType dtype, std::span<const int64_t> shape);

// The files that are looked for, in this order.
inline constexpr const char* kWeightsName = "model.safetensors";
inline constexpr const char* kWeightsIndexName = "model.safetensors.index.json";
inline constexpr const char* kTorchWeightsName = "pytorch_model.bin";
inline constexpr const char* kTorchIndexName = "pytorch_model.bin.index.json";

/// Opens model.safetensors, or the shards that its index names, or pytorch_model.bin, or its
/// shards. A tensor is where the index says; tensors that it does not name are passed over with a
/// warning. Errors: data, naming the file and what to do, if there is none, a shard or a tensor in
/// it is missing, an index names a file outside the folder, or for a file that cannot be read as
/// what it should be.
std::unique_ptr<TensorFile> open_weights(const std::string& folder,
                                         Mapping mapping = Mapping::own_copy);

}  // namespace heddle
