// Looking tensors up by name, and using them where they lie.
#include "heddle/io/tensor_file.h"

#include <algorithm>

#include "heddle/base/error.h"
#include "heddle/base/names.h"
#include "heddle/tensor/convert.h"

namespace heddle {
namespace {

bool is_inside(std::span<const std::byte> bytes, std::span<const std::byte> of) {
  return bytes.data() >= of.data() && bytes.data() + bytes.size() <= of.data() + of.size();
}

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
        ErrorKind::internal, "{}: {} bytes are no {} of {}", path(), bytes.size(), shape.str(),
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

}  // namespace heddle
