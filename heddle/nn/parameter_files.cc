// Parameters in files: the names that a checkpoint may use, values in place or copied, saving.
#include <algorithm>
#include <cstring>
#include <list>
#include <set>

#include "heddle/base/parallel.h"
#include "heddle/io/safetensors.h"
#include "heddle/io/tensor_file.h"
#include "heddle/kernels/kernels.h"
#include "heddle/nn/parameter_parts.h"
#include "heddle/tensor/convert.h"

namespace heddle::nn {
namespace {

// Matrices end to end as they lie in memory, whose axes the file has swapped.
struct Swapped {
  int64_t matrices, rows, columns;
};
// width: of a row of the parameter
Swapped swapped(const Part& part, int64_t width) {
  if (part.layout == Layout::transposed) return {1, part.rows, width};
  const int64_t channels = part.file_shape[1];
  return {part.rows, width / std::max<int64_t>(1, channels), channels};
}

// to[c, r] = from[r, c], in squares that stay in cache.
void transpose_into(const float* from, int64_t rows, int64_t columns, float* to) {
  constexpr int64_t kSquare = 32;
  parallel_blocks(rows, kSquare, [&](int64_t begin, int64_t end) {
    for (int64_t left = 0; left < columns; left += kSquare) {
      const int64_t right = std::min(columns, left + kSquare);
      for (int64_t c = left; c < right; ++c) {
        for (int64_t r = begin; r < end; ++r) to[c * rows + r] = from[r * columns + c];
      }
    }
  });
}

// The same of each of so many matrices.
void transpose_into(const float* from, int64_t matrices, int64_t rows, int64_t columns, float* to) {
  if (matrices == 1) return transpose_into(from, rows, columns, to);
  parallel_for(matrices, [&](int64_t i) {
    transpose_into(from + i * rows * columns, rows, columns, to + i * rows * columns);
  });
}

// Of the scales of a weight that is rounded to a few bits, behind its name.
constexpr const char* kScaleEnding = "_scale";

bool is_unneeded(const TensorNames& names, const std::string& name) {
  return std::any_of(names.unneeded.begin(), names.unneeded.end(), [&](const std::string& part) {
    return name.starts_with(part) || name.ends_with(part);
  });
}

// `name` with and without the base.
std::vector<std::string> with_base(const TensorNames& names, const std::string& name) {
  if (names.base.empty()) return {name};
  const std::string base = names.base + ".";
  return {name, name.starts_with(base) ? name.substr(base.size()) : base + name};
}

// In the newer spelling.
std::string respelled(const TensorNames& names, std::string name) {
  for (const auto& [old, now] : names.respelled) {
    if (const size_t at = name.find(old); at != name.npos) name.replace(at, old.size(), now);
  }
  return name;
}

// The names under which a file may hold the tensor `name`, the first that it has counts.
std::vector<std::string> spellings(const TensorNames& names, const std::string& name) {
  std::vector<std::string> all = with_base(names, name);
  for (const std::string& s : with_base(names, respelled(names, name))) all.push_back(s);
  for (const auto& [old, now] : names.endings) {
    if (!name.ends_with(now)) continue;
    const std::string renamed = name.substr(0, name.size() - now.size()) + old;
    for (const std::string& s : with_base(names, renamed)) all.push_back(s);
  }
  for (const auto& [alias, own] : names.tied) {
    if (name != own) continue;
    for (const std::string& s : with_base(names, alias)) all.push_back(s);
  }
  return all;
}

}  // namespace

void Parameters::load(const TensorFile& file, const TensorNames& names) {
  std::string problems;
  PlacesInUse in_use;
  std::set<std::string> used;
  for (auto& p : all_) {
    std::vector<const StoredTensor*> found, scales;
    for (const Part& part : p->parts()) {
      const StoredTensor *info = nullptr, *scale = nullptr;
      for (const std::string& name : spellings(names, part.name)) {
        if (info == nullptr) {
          info = file.find(name);
          scale = file.find(name + kScaleEnding);
        }
        used.insert(name);
        used.insert(name + kScaleEnding);
      }
      const Shape wanted = file_shape(*p, part);
      if (info == nullptr && p->kind() == ParameterKind::counter) {
        p->take(Tensor::zeros(p->shape(), DType::f32));
      } else if (info == nullptr) {
        problems += fmt::format("\n  missing: {} {}", part.name, wanted.str());
      } else if (scale != nullptr) {
        found.push_back(info);
        scales.push_back(scale);
      } else if (Shape(info->shape) != wanted) {
        problems += fmt::format("\n  {}: the file has {}, the model needs {}", part.name,
                                Shape(info->shape).str(), wanted.str());
      } else {
        found.push_back(info);
      }
    }
    if (found.size() < p->parts().size()) continue;  // an error, see below
    if (!scales.empty()) {
      problems += take_quantized(*p, file, found, scales);
      continue;
    }
    if (held_ >= 0 && use_in_place(*p, file, found, in_use)) continue;
    for (size_t i = 0; i < found.size(); ++i) fill(*p, p->parts()[i], *found[i]);
    p->changed(true);
  }
  for (const std::string& name : file.names()) {
    if (used.contains(name) || is_unneeded(names, name)) continue;
    problems += fmt::format("\n  not used by the model: {}", name);
  }
  check(problems.empty(), ErrorKind::data,
        "{}: the weights do not fit config.json; is it the config of this model?{}", file.path(),
        problems);
}

std::vector<std::string> Parameters::load_some(const TensorFile& file, const TensorNames& names,
                                               std::span<const std::string> wanted) {
  std::vector<std::string> others;
  for (auto& p : all_) {
    if (std::find(wanted.begin(), wanted.end(), p->name()) == wanted.end()) continue;
    std::vector<const StoredTensor*> found;
    for (const Part& part : p->parts()) {
      for (const std::string& name : spellings(names, part.name)) {
        const StoredTensor* info = file.find(name);
        if (info == nullptr || Shape(info->shape) != file_shape(*p, part)) continue;
        found.push_back(info);
        break;
      }
    }
    if (found.size() < p->parts().size()) {
      others.push_back(p->name());
      continue;
    }
    for (size_t i = 0; i < found.size(); ++i) fill(*p, p->parts()[i], *found[i]);
    p->changed(true);
  }
  return others;
}

namespace {

// Tensors that lie end to end along their first axis as one, in the file where it lets them.
Tensor joined(const TensorFile& file, const std::vector<const StoredTensor*>& parts) {
  std::vector<int64_t> shape = parts[0]->shape;
  const std::byte* const begin = parts[0]->bytes.data();
  const std::byte* end = begin;
  bool is_in_place = true;
  shape[0] = 0;
  for (const StoredTensor* part : parts) {
    shape[0] += part->shape[0];
    is_in_place &= part->bytes.data() == end;
    end += part->bytes.size();
  }
  if (is_in_place) {
    const Tensor there = file.in_place({begin, end}, Shape(shape), parts[0]->dtype);
    if (there.defined()) return there;
  }
  Tensor copy = Tensor::empty(Shape(shape), parts[0]->dtype);
  auto* to = static_cast<std::byte*>(copy.rows().data);
  for (const StoredTensor* part : parts) to = std::ranges::copy(part->bytes, to).out;
  return copy;
}

// What the file says of a part, which must be rounded as the first one is, in whole panels.
std::string problem_of(const Parameter& p, size_t i, const StoredTensor& values,
                       const StoredTensor& scales, const StoredTensor& first) {
  const Part& part = p.parts()[i];
  QuantizedRows q = {.rows = part.rows, .bits = values.dtype == DType::u8 ? 4 : 8};
  const bool has_axes = p.shape().rank() == 2 && values.shape.size() == 3 &&
                        (values.dtype == DType::u8 || values.dtype == DType::i8);
  if (has_axes) q.width = p.shape()[1], q.group = values.shape[2] * 8 / q.bits / q.kPanel;
  const bool is_last = i + 1 == p.parts().size();
  if (has_axes && (q.group == 32 || q.group == 64) && (is_last || q.rows % q.kPanel == 0) &&
      values.dtype == first.dtype && values.shape[2] == first.shape[2] &&
      Shape(values.shape) == Shape{q.panels(), q.groups(), q.group_bytes()} &&
      scales.dtype == DType::bf16 &&
      Shape(scales.shape) == Shape{q.panels(), q.groups(), q.kPanel}) {
    return "";
  }
  return fmt::format(
      "\n  {}: the file has {} {} and scales {} {}, which are no panels of 4 or 8 bits of the {} "
      "that the model needs",
      part.name, dtype_name(values.dtype), Shape(values.shape).str(), dtype_name(scales.dtype),
      Shape(scales.shape).str(), part_shape(p, part).str());
}

}  // namespace

// Returns what is wrong, "" if nothing.
std::string Parameters::take_quantized(Parameter& p, const TensorFile& file,
                                       const std::vector<const StoredTensor*>& values,
                                       const std::vector<const StoredTensor*>& scales) {
  if (scales.size() < values.size()) {
    return fmt::format("\n  {}: only some of its parts are rounded to a few bits", p.name());
  }
  for (size_t i = 0; i < values.size(); ++i) {
    std::string problem = problem_of(p, i, *values[i], *scales[i], *values[0]);
    if (!problem.empty()) return problem;
  }
  p.take(QuantizedTensor(p.shape(), joined(file, values), joined(file, scales)));
  return "";
}

// Whether the file holds the parameter as it is to lie in memory: the parts of one dtype, end to
// end. Then it is used there, but by one parameter only: tensors of a checkpoint may share bytes.
bool Parameters::use_in_place(Parameter& p, const TensorFile& file,
                              const std::vector<const StoredTensor*>& parts, PlacesInUse& in_use) {
  const DType dtype = parts[0]->dtype;
  const std::byte* const begin = parts[0]->bytes.data();
  const std::byte* end = begin;
  if (dtype != DType::f32 && (dtype != DType::bf16 || p.shape().rank() < 2)) return false;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (p.parts()[i].layout != Layout::as_is) return false;
    if (parts[i]->dtype != dtype || parts[i]->bytes.data() != end) return false;
    end += parts[i]->bytes.size();
  }
  const auto behind = in_use.lower_bound(end);  // those before it begin before the end
  const bool is_shared =
      behind != in_use.begin() && std::prev(behind)->first + std::prev(behind)->second > begin;
  if (is_shared) return false;
  const Tensor values = file.in_place({begin, end}, p.shape(), dtype);
  if (!values.defined()) return false;
  p.take(values);
  in_use[begin] = static_cast<size_t>(end - begin);
  return true;
}

// All threads copy: what takes the time is the first touch of the memory.
void Parameters::fill(Parameter& p, const Part& part, const StoredTensor& info) {
  const auto convert = [&](float* to) {
    parallel_blocks(info.elements(), 1 << 18, [&](int64_t begin, int64_t end) {
      convert_to_floats(info.bytes.data() + begin * size_of(info.dtype), info.dtype,
                        {to + begin, static_cast<size_t>(end - begin)});
    });
  };
  float* const values = part_values(p.value(), part);
  if (part.layout == Layout::as_is) return convert(values);
  const auto* from = reinterpret_cast<const float*>(info.bytes.data());
  Tensor copy;
  if (info.dtype != DType::f32 || reinterpret_cast<uintptr_t>(from) % alignof(float) != 0) {
    copy = Tensor::empty(Shape(info.shape), DType::f32);
    convert(copy.data<float>());
    from = copy.data<float>();
  }
  const Swapped m = swapped(part, info.elements() / std::max<int64_t>(1, part.rows));
  transpose_into(from, m.matrices, m.columns, m.rows, values);
}

void Parameters::for_each_tensor(
    const std::function<void(const std::string&, const Shape&, const float*)>& f) const {
  for (const auto& p : all_) {
    if (!p->is_saved()) continue;
    for (const Part& part : p->parts()) {
      if (part.layout == Layout::as_is) {
        f(part.name, file_shape(*p, part), part_values(p->value(), part));
      } else {
        f(part.name, file_shape(*p, part), part_of(p->value(), part).data());
      }
    }
  }
}

namespace {

// Where a part's bytes stand among others.
std::string place_of_part(const Parameter& p, size_t i) {
  return fmt::format("{}\x01{:04}", p.name(), i);
}

// Panels [begin, begin + count) of a tensor.
NamedTensorView panels_of(const Tensor& all, int64_t begin, int64_t count, std::string name,
                          std::string place) {
  const int64_t bytes = all.size(1) * all.size(2) * size_of(all.dtype());
  const auto* const first = static_cast<const std::byte*>(all.rows().data) + begin * bytes;
  return {std::move(name),
          all.dtype(),
          {count, all.size(1), all.size(2)},
          {first, static_cast<size_t>(count * bytes)},
          std::move(place)};
}

// The parts of a rounded parameter, values and scales.
void add_quantized(const Parameter& p, std::vector<NamedTensorView>& views) {
  for (size_t i = 0; i < p.parts().size(); ++i) {
    const Part& part = p.parts()[i];
    const int64_t first = part.begin / QuantizedRows::kPanel;
    const int64_t count = QuantizedRows{.rows = part.rows}.panels();
    views.push_back(
        panels_of(p.quantized()->values(), first, count, part.name, place_of_part(p, i)));
    views.back().is_first = true;
    views.push_back(panels_of(p.quantized()->scales(), first, count, part.name + kScaleEnding,
                              place_of_part(p, i)));
  }
}

}  // namespace

void Parameters::save(const std::string& path, DType dtype) const {
  check_saved(dtype);
  std::vector<NamedTensorView> views;
  std::list<std::vector<float>> copies;         // of what lies otherwise in the file
  std::list<std::vector<std::byte>> converted;  // of another dtype
  const bool has_rounded = is_quantized();
  for (const auto& p : all_) {
    if (!p->is_saved()) continue;
    if (p->quantized() != nullptr) {
      add_quantized(*p, views);
      continue;
    }
    for (size_t i = 0; i < p->parts().size(); ++i) {
      const Part& part = p->parts()[i];
      const Shape shape = file_shape(*p, part);
      const float* values = part_values(p->value(), part);
      if (part.layout != Layout::as_is) {
        values = copies.emplace_back(part_of(p->value(), part)).data();
      }
      const std::span<const float> floats(values, static_cast<size_t>(shape.elements()));
      std::span<const std::byte> bytes = std::as_bytes(floats);
      const DType kept = p->kind() == ParameterKind::counter    ? DType::i64
                         : has_rounded && p->shape().rank() < 2 ? DType::f32
                                                                : dtype;
      if (kept != DType::f32) {
        bytes = converted.emplace_back(convert_from_floats(floats, kept, part.name));
      }
      views.push_back({part.name,
                       kept,
                       {shape.sizes().begin(), shape.sizes().end()},
                       bytes,
                       // Parts of one parameter lie end to end, so that it can be used in place.
                       place_of_part(*p, i)});
    }
  }
  write_safetensors(path, std::move(views), {{"format", "pt"}});
}

std::vector<float> part_of(const Tensor& whole, const Part& part) {
  const int64_t width = whole.elements() / std::max<int64_t>(1, whole.size(0));
  const float* const values = part_values(whole, part);
  std::vector<float> result(values, values + part.rows * width);
  if (part.layout != Layout::as_is) {
    const Swapped m = swapped(part, width);
    transpose_into(values, m.matrices, m.rows, m.columns, result.data());
  }
  return result;
}

}  // namespace heddle::nn
