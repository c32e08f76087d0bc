// Looking tensors up by name, and using them where they lie; one file, or an index and its shards.
#include "heddle/io/tensor_file.h"

#include <algorithm>
#include <fstream>
#include <map>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/base/json/json.h"
#include "heddle/base/log.h"
#include "heddle/base/names.h"
#include "heddle/io/safetensors.h"
#include "heddle/io/torch_file.h"
#include "heddle/tensor/convert.h"

namespace heddle {
namespace {

bool is_inside(std::span<const std::byte> bytes, std::span<const std::byte> of) {
  return bytes.data() >= of.data() && bytes.data() + bytes.size() <= of.data() + of.size();
}

// A clone without git-lfs holds a few lines of text in the place of each large file.
void check_no_pointer(const std::string& path) {
  constexpr std::string_view kBegin = "version https://git-lfs";
  std::ifstream file(path, std::ios::binary);
  std::string begin(kBegin.size(), '\0');
  file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  check(begin != kBegin, ErrorKind::data,
        "{}: it is a pointer of Git LFS and not the file itself; run `git lfs pull` in its folder",
        path);
}

std::unique_ptr<TensorFile> open_file(const std::string& path, bool is_torch, Mapping mapping) {
  check_no_pointer(path);
  if (is_torch) return std::make_unique<TorchFile>(TorchFile::open(path, mapping));
  return std::make_unique<SafetensorsFile>(SafetensorsFile::open(path, mapping));
}

// The tensors of several files, under an index {"weight_map": {TENSOR: FILE}}.
class ShardedFile : public TensorFile {
 public:
  ShardedFile(const std::string& folder, const std::string& index, bool is_torch, Mapping mapping)
      : TensorFile(join_path(folder, index)) {
    const Json json = Json::load(path());
    const std::string what = path() + ": key 'weight_map'";
    std::map<std::string, std::vector<std::string>> tensors;  // by shard
    for (const auto& [name, shard] : json.at("weight_map", path()).as_object(what)) {
      tensors[shard.as_string(fmt::format("{}: '{}'", what, name))].push_back(name);
    }
    check(!tensors.empty(), ErrorKind::data, "{} is empty; it names no tensor", what);
    for (const auto& [shard, names] : tensors) check_shard(folder, shard, names.front());
    for (const auto& [shard, names] : tensors) {
      add_shard(open_file(join_path(folder, shard), is_torch, mapping), names);
    }
  }

  void verify() const override {
    for (const auto& shard : shards_) shard->verify();
  }

 private:
  // All are looked for before the first is read.
  void check_shard(const std::string& folder, const std::string& shard,
                   const std::string& tensor) const {
    const bool is_plain = !shard.empty() && shard != "." && shard != ".." &&
                          shard.find('/') == shard.npos && shard.find('\0') == shard.npos;
    check(is_plain, ErrorKind::data,
          "{}: tensor '{}' is said to be in '{}'; a shard must be a file of the same folder",
          path(), tensor, shard);
    check(path_exists(join_path(folder, shard)), ErrorKind::data,
          "{}: the shard {} is missing; it holds '{}' and more. Was the model copied whole?",
          path(), shard, tensor);
  }

  void add_shard(std::unique_ptr<TensorFile> shard, const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      const StoredTensor* tensor = shard->find(name);
      check(tensor != nullptr, ErrorKind::data, "{}: tensor '{}' should be in {}, but is not there",
            path(), name, shard->path());
      add(name, *tensor);
    }
    if (names.size() < shard->names().size()) {
      log_warning("{}: {} of its {} tensors are not named by the index and passed over",
                  shard->path(), shard->names().size() - names.size(), shard->names().size());
    }
    add_files_of(*shard);
    shards_.push_back(std::move(shard));
  }

  std::vector<std::unique_ptr<TensorFile>> shards_;
};

}  // namespace

std::vector<float> StoredTensor::floats() const {
  std::vector<float> values(static_cast<size_t>(elements()));
  convert_to_floats(bytes.data(), dtype, values);
  return values;
}

int64_t bytes_of(DType dtype, std::span<const int64_t> shape) {
  int64_t bytes = size_of(dtype);
  for (const int64_t size : shape) {
    if (size < 0 || __builtin_mul_overflow(bytes, size, &bytes)) return -1;
  }
  return bytes;
}

int64_t TensorFile::elements() const {
  int64_t n = 0;
  for (const auto& [name, tensor] : tensors_) n += tensor.elements();
  return n;
}

const StoredTensor* TensorFile::find(std::string_view name) const {
  const auto it = tensors_.find(std::string(name));
  return it == tensors_.end() ? nullptr : &it->second;
}

const StoredTensor& TensorFile::info(std::string_view name) const {
  const StoredTensor* found = find(name);
  if (found != nullptr) return *found;
  const std::string nearest = nearest_name(name, names_);
  fail(ErrorKind::data, "{}: there is no tensor '{}' among its {}{}", path(), name, names_.size(),
       nearest.empty() ? "" : fmt::format("; the nearest is '{}'", nearest));
}

Tensor TensorFile::in_place(std::span<const std::byte> bytes, const Shape& shape,
                            DType dtype) const {
  check(static_cast<int64_t>(bytes.size()) == shape.elements() * size_of(dtype),
        ErrorKind::internal, "{}: {} bytes are no {} of {}", path(), bytes.size(), shape,
        dtype_name(dtype));
  const auto file = std::find_if(files_.begin(), files_.end(),
                                 [&](const auto& f) { return is_inside(bytes, f->bytes()); });
  const auto address = reinterpret_cast<uintptr_t>(bytes.data());
  if (file == files_.end() || (*file)->mapping() != Mapping::own_copy || bytes.empty() ||
      address % size_of(dtype) != 0) {
    return {};
  }
  std::byte* const start =
      (*file)->writable_bytes().data() + (bytes.data() - (*file)->bytes().data());
  const auto size = static_cast<int64_t>(bytes.size());
  return Tensor::view_of(Storage::borrow(start, size, *file), 0, shape, dtype);
}

void TensorFile::add(std::string name, StoredTensor tensor) {
  check(tensor.shape.size() <= size_t{Shape::kMaxRank}, ErrorKind::data,
        "{}: tensor '{}' has {} axes; heddle's tensors have at most {}", path(), name,
        tensor.shape.size(), Shape::kMaxRank);
  const bool is_new = tensors_.emplace(name, std::move(tensor)).second;
  check(is_new, ErrorKind::data, "{}: the tensor '{}' appears twice", path(), name);
  names_.push_back(std::move(name));
}

void TensorFile::add_files_of(const TensorFile& shard) {
  files_.insert(files_.end(), shard.files_.begin(), shard.files_.end());
}

std::unique_ptr<TensorFile> open_weights(const std::string& folder, Mapping mapping) {
  const auto is_there = [&](const char* name) { return path_exists(join_path(folder, name)); };
  for (const bool is_torch : {false, true}) {
    const char* const whole = is_torch ? kTorchWeightsName : kWeightsName;
    const char* const index = is_torch ? kTorchIndexName : kWeightsIndexName;
    if (is_there(whole)) return open_file(join_path(folder, whole), is_torch, mapping);
    if (is_there(index)) return std::make_unique<ShardedFile>(folder, index, is_torch, mapping);
  }
  fail(
      ErrorKind::data,
      "{}: the weights are missing: there is no {}, no {} and no index of shards ({}, {}); was the "
      "model copied whole?",
      folder, kWeightsName, kTorchWeightsName, kWeightsIndexName, kTorchIndexName);
}

}  // namespace heddle
