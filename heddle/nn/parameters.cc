// Parameters: made or loaded once by name, initialised from Philox, copied to bf16 when changed.
#include "heddle/nn/parameters.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "heddle/autograd/final_gradients.h"
#include "heddle/base/files/files.h"
#include "heddle/base/parallel.h"
#include "heddle/base/rng.h"
#include "heddle/kernels/kernels.h"
#include "heddle/nn/parameter_parts.h"

namespace heddle::nn {
namespace {

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
    value_ = quantized_ ? dequantized(*quantized_) : Tensor::empty(shape_, DType::f32);
    if (shadow_.defined() && !quantized_) kernels().convert(shadow_.rows(), value_.rows());
  }
  return value_;
}

Tensor Parameter::in(DType compute) {
  UsedLeaves::note(leaf_);
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
  UsedLeaves::note(leaf_);
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
  quantized_.reset();
  if (shadow_too && shadow_.defined()) kernels().convert(value().rows(), shadow_.rows());
}

void Parameter::take(const Tensor& values) {
  check(values.shape() == shape_ && values.contiguous(), ErrorKind::internal, "{}: {} given for {}",
        name(), values.shape(), shape_);
  forget_identities();
  quantized_.reset();
  const bool is_bf16 = values.dtype() == DType::bf16;
  value_ = is_bf16 ? Tensor() : values;
  shadow_ = is_bf16 ? values : Tensor();
}

void Parameter::take(QuantizedTensor values) {
  check(shape_ == Shape{values.rows().rows, values.rows().width}, ErrorKind::internal,
        "{}: [{}, {}] given for {}", name(), values.rows().rows, values.rows().width, shape_);
  forget_identities();
  value_ = shadow_ = Tensor();
  quantized_ = std::move(values);
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

bool Parameters::is_quantized() const {
  return std::ranges::any_of(all_, [](const auto& p) { return p->quantized() != nullptr; });
}

void Parameters::dequantize() {
  for (auto& p : all_) {
    if (p->quantized() != nullptr) p->take(dequantized(*p->quantized()));
  }
}

std::string Parameters::checksum() const {
  std::string sums;
  for (const auto& p : all_) {
    const std::span values(p->value().data<float>(), static_cast<size_t>(p->elements()));
    sums += heddle::checksum(std::as_bytes(values));
  }
  return heddle::checksum(sums);
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
