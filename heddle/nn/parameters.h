// Parameters and the scope that names them.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "heddle/autograd/tape.h"
#include "heddle/ops/quantized.h"

namespace heddle {

class TensorFile;
struct StoredTensor;

namespace nn {

/// How a parameter begins.
struct Init {
  enum class Kind { zeros, ones, constant, normal, uniform, xavier_uniform } kind = Kind::zeros;
  double value = 0;       ///< of constant; the bound of uniform
  double std = 0;         ///< of normal
  double gain = 1;        ///< of xavier_uniform
  int64_t zero_row = -1;  ///< this row begins (and counts) as zero: the padding token
  int64_t ones_begin = 0, ones_count = 0;  ///< these rows begin as 1

  static Init zeros() { return {}; }
  static Init ones() { return {Kind::ones}; }
  static Init constant(double value) { return {.kind = Kind::constant, .value = value}; }
  static Init normal(double std, int64_t zero_row = -1) {
    return {.kind = Kind::normal, .std = std, .zero_row = zero_row};
  }
  /// For ReLU behind a convolution of square windows: variance 2 / (numbers that an input goes
  /// into). Source: He et al. 2015, section 2.2, its backward case, as in torchvision.
  static Init kaiming(int64_t kernel, int64_t out);
  /// Uniform in ±bound.
  static Init uniform(double bound) { return {.kind = Kind::uniform, .value = bound}; }
  /// Uniform in ±gain * sqrt(6 / (in + out)). Source: Glorot & Bengio 2010.
  static Init xavier_uniform(double gain = 1) {
    return {.kind = Kind::xavier_uniform, .gain = gain};
  }
};

/// How the checkpoint holds a matrix: as it lies in memory; with its axes swapped; or, of a
/// convolution, whose row of memory has the channels of each pixel of a window side by side, as
/// [out, channels, height, width].
enum class Layout : uint8_t { as_is, transposed, channels_first };

/// What a parameter is: what gradients train, or a buffer, which the forward pass of training
/// updates itself (a running mean): it has no gradient, no moments, no decay, and counts as no
/// weight, but is saved, kept by states of a run and averaged like the weights. Counters are
/// buffers of one whole number, an i64 scalar in checkpoints, which may lack it (then 0).
enum class ParameterKind : uint8_t { trained, buffer, counter };

/// Rows of a parameter that the checkpoint holds under a name of their own.
struct Part {
  std::string name;
  int64_t begin = 0;
  int64_t rows = 0;
  Layout layout = Layout::as_is;
  /// The checkpoint's shape where it cuts an axis into several: [width, heads, d]; empty: two axes
  /// or those in memory. Of channels_first always there.
  std::vector<int64_t> file_shape = {};
};

/// Other spellings of tensors that a checkpoint may use.
struct TensorNames {
  std::string base = {};  ///< "transformer": names may have or lack this first part
  /// One tensor under two names, {"lm_head.weight", "transformer.wte.weight"}: the file may hold
  /// either or both, the parameter has the second.
  std::vector<std::pair<std::string, std::string>> tied = {};
  /// Old endings, {".gamma", ".weight"}: the file may have the first for the second.
  std::vector<std::pair<std::string, std::string>> endings = {};
  /// Newer spellings, {"encoder.layer.", "layers."}: what a name may have for its first such part,
  /// one pair after the other; a file has them all.
  std::vector<std::pair<std::string, std::string>> respelled = {};
  /// Beginnings and endings of names that hold nothing the model needs: buffers, other heads.
  std::vector<std::string> unneeded = {};
};

/// A weight, whose copies are made when they are first asked for, by any thread: f32 master, bf16
/// copy where computing is in bf16, gradient. Several tensors of a checkpoint may lie in one
/// parameter (q, k and v in one product). Either may lie in a mapped file; what a file holds as
/// bf16, or rounded to a few bits, has no master until one is asked for.
class Parameter {
 public:
  /// Its values are anything until they are written or taken.
  Parameter(std::string name, const Shape& shape, std::vector<Part> parts,
            ParameterKind kind = ParameterKind::trained);
  Parameter(const Parameter&) = delete;
  Parameter& operator=(const Parameter&) = delete;
  ~Parameter();

  const std::string& name() const { return leaf_.name; }
  const std::vector<Part>& parts() const { return parts_; }
  const Shape& shape() const { return shape_; }
  int64_t elements() const { return shape_.elements(); }
  /// Whether weight decay counts for it: for matrices that do not say otherwise.
  bool decays() const { return decays_ && shape_.rank() >= 2; }
  /// To be said of tables that are no matrices of a product (class tokens, positions) where those
  /// who published the model do not decay them.
  Parameter& without_decay() {
    decays_ = false;
    return *this;
  }
  /// Whether it is the matrix of a linear layer or a convolution from hidden states to hidden
  /// states: no table, no head, nothing over pixels.
  bool is_hidden_matrix() const { return is_hidden_matrix_; }
  void between_hidden_states() { is_hidden_matrix_ = true; }
  /// Whether it is the matrix of a linear layer that gives hidden states: products and nothing
  /// else are made with it.
  bool is_linear_matrix() const { return is_linear_matrix_; }
  void of_linear_layer() { is_linear_matrix_ = true; }
  /// Whether each row is that of a class of the config's, in its order; one of no object may stand
  /// behind them.
  bool has_class_rows() const { return has_class_rows_; }
  Parameter& of_classes() {
    has_class_rows_ = true;
    return *this;
  }
  /// Whether it is a part of the model: others are trained beside it and stand in states of a run,
  /// but not in what is saved of the model.
  bool is_saved() const { return is_saved_; }
  Parameter& beside_model() {
    is_saved_ = false;
    return *this;
  }
  ParameterKind kind() const { return kind_; }
  bool is_buffer() const { return kind_ != ParameterKind::trained; }
  /// Of a buffer: whether training leaves it as it is, and takes it for what it would be.
  bool is_fixed() const { return is_fixed_; }
  void fix() { is_fixed_ = true; }
  /// f32 master.
  const Tensor& value() const;
  /// Gradient, f32; undefined if none came.
  Tensor& grad() { return leaf_.grad; }

  /// For an op: the master, or its bf16 copy (matrices only), with the leaf that takes the
  /// gradient.
  Tensor in(DType compute);
  /// For an op without gradients that rounds an f32 weight as it reads it: as in(), but no bf16
  /// copy is made for it.
  Tensor in_or_master(DType compute);
  /// bf16 copy if it exists, else null: the optimizer keeps it up to date.
  bf16* shadow();
  /// Identity of in(compute) for GemmArgs::constant_b: another one after each change of the values.
  uint64_t identity(DType compute);
  /// To be called after the values were changed. `shadow_too`: the bf16 copy was not updated.
  void changed(bool shadow_too);
  /// Makes this memory its values: f32, or for matrices bf16; of shape().
  void take(const Tensor& values);
  /// Makes these its values, which products without gradients take as they are; of shape().
  void take(QuantizedTensor values);
  /// Null unless its values are rounded to a few bits.
  const QuantizedTensor* quantized() const { return quantized_ ? &*quantized_ : nullptr; }

 private:
  void forget_identities();
  const Tensor& master() const;

  Leaf leaf_;
  ParameterKind kind_;
  bool is_fixed_ = false;
  Shape shape_;
  std::vector<Part> parts_;
  bool decays_ = true, is_saved_ = true, is_hidden_matrix_ = false, is_linear_matrix_ = false;
  bool has_class_rows_ = false;
  mutable std::mutex mutex_;  // of the copies that are made when asked for
  mutable Tensor value_;
  Tensor shadow_;
  std::optional<QuantizedTensor> quantized_;
  uint64_t identity_ = 0, shadow_identity_ = 0;  // 0: none was asked for
};

/// The part of `whole` (a parameter's values or its gradient, f32) as the checkpoint holds it.
std::vector<float> part_of(const Tensor& whole, const Part& part);

/// All parameters of a model, in order of construction.
class Parameters {
 public:
  explicit Parameters(uint64_t seed) : seed_(seed) {}
  /// Parameters that load() will fill; until then they hold anything. `elements`: what the file at
  /// `path` holds; asking for far more is a data error, before memory is taken for it.
  static Parameters to_be_loaded(int64_t elements, std::string path);

  /// Parameters whose values nobody will ask for: they take no memory.
  static Parameters shapes_alone();

  /// Finds or makes a parameter. A name asked for twice is one parameter (tied weights).
  /// Errors: internal if it is asked for again with other parts or shape.
  Parameter& get(const Shape& shape, const std::vector<Part>& parts, const Init& init,
                 ParameterKind kind = ParameterKind::trained);

  std::vector<std::unique_ptr<Parameter>>& all() { return all_; }
  const std::vector<std::unique_ptr<Parameter>>& all() const { return all_; }
  /// Whether some are rounded to a few bits.
  bool is_quantized() const;
  /// Gives those f32 values in place of the rounded form.
  void dequantize();
  /// The checksum of the checksums of all, which are f32; see heddle::checksum().
  std::string checksum() const;
  /// Number of scalars, those of buffers left out.
  int64_t elements() const;

  /// Takes values from a file. Parameters to_be_loaded() use them where they lie if the file lets
  /// them (TensorFile::in_place()); otherwise, and always where dtypes or layouts differ, they
  /// are copied. Errors: data, listing what is missing, what has another shape (both shapes), and
  /// what the model does not use.
  void load(const TensorFile& file, const TensorNames& names = {});
  /// Fills those of the parameters `wanted` that the file has, whole and in the right shape.
  /// returns: the names of the others
  std::vector<std::string> load_some(const TensorFile& file, const TensorNames& names,
                                     std::span<const std::string> wanted);
  /// Calls f(name, shape, f32 values) for each tensor that is_saved(), as the checkpoint holds it;
  /// the values are valid during the call.
  void for_each_tensor(
      const std::function<void(const std::string&, const Shape&, const float*)>& f) const;
  /// Writes model.safetensors in f32, bf16 or f16. Of rounded weights the file holds the rounded
  /// form (docs/models.md), and vectors beside them in f32. Errors: system for a full disk; data
  /// for values beyond f16; usage for another dtype.
  void save(const std::string& path, DType dtype = DType::f32) const;

 private:
  /// Where the bytes begin that parameters use in place, and how many they are.
  using PlacesInUse = std::map<const std::byte*, size_t>;

  void initialise(Parameter& parameter, const Init& init) const;
  void check_held(const Shape& shape, const std::string& name);
  static void fill(Parameter& parameter, const Part& part, const StoredTensor& info);
  static std::string take_quantized(Parameter& parameter, const TensorFile& file,
                                    const std::vector<const StoredTensor*>& values,
                                    const std::vector<const StoredTensor*>& scales);
  static bool use_in_place(Parameter& parameter, const TensorFile& file,
                           const std::vector<const StoredTensor*>& parts, PlacesInUse& in_use);

  uint64_t seed_;
  int64_t held_ = -1;  // elements in the file, if there is one
  std::string path_;
  std::vector<std::unique_ptr<Parameter>> all_;
};

/// A place in the tree of names: s / "encoder" / "layers" / 3.
class Scope {
 public:
  explicit Scope(Parameters& parameters, std::string prefix = "")
      : parameters_(&parameters), prefix_(std::move(prefix)) {}
  Scope operator/(const std::string& name) const {
    Scope s = *this;
    s.prefix_ += s.prefix_.empty() ? name : "." + name;
    return s;
  }
  Scope operator/(int64_t index) const { return *this / std::to_string(index); }
  const std::string& prefix() const { return prefix_; }
  /// The same place, whose parameters have what `rename` makes of their names: a checkpoint's own
  /// names for a stack that others share.
  Scope renamed(std::string (*rename)(std::string name)) const {
    Scope s = *this;
    s.rename_ = rename;
    return s;
  }

  /// The parameter of this scope: s / "weight". `shape` is that in memory; file_shape: see Part.
  Parameter& parameter(const Shape& shape, const Init& init, Layout layout = Layout::as_is,
                       const std::vector<int64_t>& file_shape = {}) const;
  /// The buffer of this scope: [size] values, or one counter.
  Parameter& buffer(int64_t size, const Init& init) const;
  Parameter& counter() const;
  /// One parameter of several tensors stacked along the first axis, named `NAME.leaf` under this
  /// scope, of rows[i] rows; each is initialised on its own.
  Parameter& stacked(const std::vector<std::string>& names, const std::string& leaf,
                     const std::vector<int64_t>& rows, const Shape& each, const Init& init) const;
  /// The same of parts that the checkpoint holds each in its own way, named under this scope; where
  /// they begin follows from their rows.
  Parameter& stacked(std::vector<Part> parts, const Shape& each, const Init& init) const;

 private:
  std::string stored_name() const { return rename_ == nullptr ? prefix_ : rename_(prefix_); }

  Parameters* parameters_;
  std::string prefix_;
  std::string (*rename_)(std::string name) = nullptr;
};

}  // namespace nn
}  // namespace heddle
