// Parameters: made or loaded once by name, initialised from Philox, copied to bf16 when changed.
#include "heddle/nn/parameters.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <list>
#include <numbers>
#include <set>

#include "heddle/base/parallel.h"
#include "heddle/base/rng.h"
#include "heddle/io/safetensors.h"
#include "heddle/io/tensor_file.h"
#include "heddle/kernels/kernels.h"
#include "heddle/tensor/convert.h"

namespace heddle::nn {
namespace {

// In memory; see file_shape().
Shape part_shape(const Parameter& p, const Part& part) {
  Shape shape = p.shape();
  shape[0] = part.rows;
  return shape;
}

Shape file_shape(const Parameter& p, const Part& part) {
  if (p.kind() == ParameterKind::counter) return {};
  if (!part.file_shape.empty()) return Shape(part.file_shape);
  Shape shape = part_shape(p, part);
  if (part.layout == Layout::transposed) std::swap(shape[0], shape[1]);
  return shape;
}

float* part_values(const Tensor& whole, const Part& part) {
  const int64_t row = whole.elements() / std::max<int64_t>(1, whole.size(0));
  return whole.data<float>() + part.begin * row;
}

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

// Two normal values from four random words (Box & Muller 1958).
std::array<float, 2> normal_pair(uint32_t a, uint32_t b) {
  const double u = (a + 1.0) * 0x1p-32, angle = 2 * std::numbers::pi * (b * 0x1p-32);
  const double radius = std::sqrt(-2 * std::log(u));
  return {static_cast<float>(radius * std::cos(angle)),
          static_cast<float>(radius * std::sin(angle))};
}

}  // namespace

Init Init::kaiming(int64_t kernel, int64_t out) {
  return normal(std::sqrt(2 / static_cast<double>(kernel * kernel * out)));
}

Parameter::Parameter(std::string name, const Shape& shape, std::vector<Part> parts,
                     ParameterKind kind)
    : kind_(kind), shape_(shape), parts_(std::move(parts)) {
  leaf_.name = std::move(name);
}

Parameter::~Parameter() { forget_identities(); }

void Parameter::forget_identities() {
  for (uint64_t* identity : {&identity_, &shadow_identity_}) {
    if (*identity != 0) forget_packed(*identity);
    *identity = 0;
  }
}

const Tensor& Parameter::value() const {
  const std::lock_guard lock(mutex_);
  return master();
}

const Tensor& Parameter::master() const {
  if (!value_.defined()) {
    value_ = Tensor::empty(shape_, DType::f32);
    if (shadow_.defined()) kernels().convert(shadow_.rows(), value_.rows());
  }
  return value_;
}

Tensor Parameter::in(DType compute) {
  const std::lock_guard lock(mutex_);
  if (compute == DType::f32 || shape_.rank() < 2) return master().with_leaf(&leaf_);
  if (!shadow_.defined()) {
    Tensor made = Tensor::empty(shape_, compute);
    kernels().convert(master().rows(), made.rows());
    shadow_ = made;
  }
  return shadow_.with_leaf(&leaf_);
}

Tensor Parameter::in_or_master(DType compute) {
  {
    const std::lock_guard lock(mutex_);
    if (compute != DType::f32 && !shadow_.defined()) return master();
  }
  return in(compute);
}

bf16* Parameter::shadow() { return shadow_.defined() ? shadow_.data<bf16>() : nullptr; }

uint64_t Parameter::identity(DType compute) {
  const std::lock_guard lock(mutex_);
  uint64_t& identity = compute == DType::f32 ? identity_ : shadow_identity_;
  if (identity == 0) identity = new_constant();
  return identity;
}

void Parameter::changed(bool shadow_too) {
  forget_identities();
  if (shadow_too && shadow_.defined()) kernels().convert(value().rows(), shadow_.rows());
}

void Parameter::take(const Tensor& values) {
  check(values.shape() == shape_ && values.contiguous(), ErrorKind::internal, "{}: {} given for {}",
        name(), values.shape(), shape_);
  forget_identities();
  const bool is_bf16 = values.dtype() == DType::bf16;
  value_ = is_bf16 ? Tensor() : values;
  shadow_ = is_bf16 ? values : Tensor();
}

Parameters Parameters::to_be_loaded(int64_t elements, std::string path) {
  Parameters p(0);
  p.held_ = elements;
  p.path_ = std::move(path);
  return p;
}

Parameters Parameters::shapes_alone() {
  return to_be_loaded(std::numeric_limits<int64_t>::max(), "");
}

// Twice what the file holds leaves room for load() to say what is missing.
void Parameters::check_held(const Shape& shape, const std::string& name) {
  double asked = static_cast<double>(elements());
  double more = 1;
  for (const int64_t size : shape.sizes()) more *= static_cast<double>(size);
  asked += more;
  check(asked < 9e18, ErrorKind::data,
        "{}: there would be {:.3g} weights; their number does not fit into 64 bits", name, asked);
  check(asked <= 2.0 * static_cast<double>(held_) + 1e5, ErrorKind::data,
        "{}: it holds {} weights, but config.json asks for at least {:.0f}, up to {}; is it the "
        "config of this model?",
        path_, held_, asked, name);
}

Parameter& Parameters::get(const Shape& shape, const std::vector<Part>& parts, const Init& init,
                           ParameterKind kind) {
  for (auto& p : all_) {
    if (p->parts()[0].name != parts[0].name) continue;
    check(p->shape() == shape, ErrorKind::internal, "parameter {} was asked for as {} and as {}",
          parts[0].name, p->shape(), shape);
    return *p;
  }
  const bool will_be_loaded = held_ >= 0;
  if (will_be_loaded) check_held(shape, parts[0].name);
  all_.push_back(std::make_unique<Parameter>(parts[0].name, shape, parts, kind));
  if (!will_be_loaded) {
    all_.back()->take(Tensor::zeros(shape, DType::f32));
    initialise(*all_.back(), init);
  }
  return *all_.back();
}

int64_t Parameters::elements() const {
  int64_t n = 0;
  for (const auto& p : all_) n += p->is_buffer() ? 0 : p->elements();
  return n;
}

// The value of an element is a function of the seed, the tensor's name and its place in it.
void Parameters::initialise(Parameter& p, const Init& init) const {
  for (const Part& part : p.parts()) {
    const Shape shape = part_shape(p, part);
    float* const values = part_values(p.value(), part);
    const int64_t n = shape.elements(), width = n / std::max<int64_t>(1, part.rows);
    const RngKey key = make_key(seed_, 0, hash_name(part.name));
    const bool is_uniform = init.kind == Init::Kind::uniform;
    const double bound = is_uniform ? init.value
                         : shape.rank() < 2
                             ? 0
                             : init.gain * std::sqrt(6.0 / static_cast<double>(shape[0] + width));
    parallel_blocks((n + 3) / 4, 4096, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        const PhiloxCounter w =
            philox({static_cast<uint32_t>(b), static_cast<uint32_t>(b >> 32), 0, 0}, key);
        std::array<float, 4> four{};
        switch (init.kind) {
          case Init::Kind::zeros: break;
          case Init::Kind::ones: four.fill(1); break;
          case Init::Kind::constant: four.fill(static_cast<float>(init.value)); break;
          case Init::Kind::normal: {
            const auto x = normal_pair(w[0], w[1]), y = normal_pair(w[2], w[3]);
            const auto std = static_cast<float>(init.std);
            four = {x[0] * std, x[1] * std, y[0] * std, y[1] * std};
            break;
          }
          case Init::Kind::uniform:
          case Init::Kind::xavier_uniform:
            for (int i = 0; i < 4; ++i) {
              four[i] = static_cast<float>((2 * ((w[i] >> 8) * 0x1p-24) - 1) * bound);
            }
            break;
        }
        for (int64_t i = 0; i < 4 && 4 * b + i < n; ++i) values[4 * b + i] = four[i];
      }
    });
    if (init.zero_row >= 0 && init.zero_row < part.rows) {
      std::memset(values + init.zero_row * width, 0, width * sizeof(float));
    }
    std::fill_n(values + init.ones_begin * width, init.ones_count * width, 1.0f);
  }
}

void Parameters::load(const TensorFile& file, const TensorNames& names) {
  std::string problems;
  PlacesInUse in_use;
  std::set<std::string> used;
  for (auto& p : all_) {
    std::vector<const StoredTensor*> found;
    for (const Part& part : p->parts()) {
      const StoredTensor* info = nullptr;
      for (const std::string& name : spellings(names, part.name)) {
        if (info == nullptr) info = file.find(name);
        used.insert(name);
      }
      const Shape wanted = file_shape(*p, part);
      if (info == nullptr && p->kind() == ParameterKind::counter) {
        p->take(Tensor::zeros(p->shape(), DType::f32));
      } else if (info == nullptr) {
        problems += fmt::format("\n  missing: {} {}", part.name, wanted.str());
      } else if (Shape(info->shape) != wanted) {
        problems += fmt::format("\n  {}: the file has {}, the model needs {}", part.name,
                                Shape(info->shape).str(), wanted.str());
      } else {
        found.push_back(info);
      }
    }
    if (found.size() < p->parts().size()) continue;  // an error, see below
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

void Parameters::save(const std::string& path, DType dtype) const {
  std::vector<NamedTensorView> views;
  std::list<std::vector<float>> copies;         // of what lies otherwise in the file
  std::list<std::vector<std::byte>> converted;  // of another dtype
  for (const auto& p : all_) {
    if (!p->is_saved()) continue;
    for (size_t i = 0; i < p->parts().size(); ++i) {
      const Part& part = p->parts()[i];
      const Shape shape = file_shape(*p, part);
      const float* values = part_values(p->value(), part);
      if (part.layout != Layout::as_is) {
        values = copies.emplace_back(part_of(p->value(), part)).data();
      }
      const std::span<const float> floats(values, static_cast<size_t>(shape.elements()));
      std::span<const std::byte> bytes = std::as_bytes(floats);
      const DType kept = p->kind() == ParameterKind::counter ? DType::i64 : dtype;
      if (kept != DType::f32) {
        bytes = converted.emplace_back(convert_from_floats(floats, kept, part.name));
      }
      views.push_back({part.name,
                       kept,
                       {shape.sizes().begin(), shape.sizes().end()},
                       bytes,
                       // Parts of one parameter lie end to end, so that it can be used in place.
                       fmt::format("{}\x01{:04}", p->name(), i)});
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

Parameter& Scope::parameter(const Shape& shape, const Init& init, Layout layout,
                            const std::vector<int64_t>& file_shape) const {
  check(layout == Layout::as_is || shape.rank() == 2, ErrorKind::internal,
        "parameter {} of shape {} has no axes to swap", prefix_, shape);
  const int64_t rows = shape.rank() == 0 ? 1 : shape[0];
  return parameters_->get(shape, {{stored_name(), 0, rows, layout, file_shape}}, init);
}

Parameter& Scope::buffer(int64_t size, const Init& init) const {
  return parameters_->get({size}, {{stored_name(), 0, size}}, init, ParameterKind::buffer);
}

Parameter& Scope::counter() const {
  return parameters_->get({1}, {{stored_name(), 0, 1}}, Init::zeros(), ParameterKind::counter);
}

Parameter& Scope::stacked(const std::vector<std::string>& names, const std::string& leaf,
                          const std::vector<int64_t>& rows, const Shape& each,
                          const Init& init) const {
  std::vector<Part> parts;
  for (size_t i = 0; i < names.size(); ++i) {
    parts.push_back({.name = names[i] + "." + leaf, .rows = rows[i]});
  }
  return stacked(std::move(parts), each, init);
}

Parameter& Scope::stacked(std::vector<Part> parts, const Shape& each, const Init& init) const {
  Shape whole = each;
  whole[0] = 0;
  for (Part& part : parts) {
    part.name = (*this / part.name).stored_name();
    part.begin = whole[0];
    whole[0] += part.rows;
  }
  return parameters_->get(whole, parts, init);
}

}  // namespace heddle::nn
