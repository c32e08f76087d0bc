// The tape: a flat list of steps, each with the closure that gives its gradient.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "heddle/tensor/tensor.h"

namespace heddle {

/// Where a gradient ends: a parameter.
struct Leaf {
  std::string name;
  Tensor grad;  ///< f32, undefined until the first backward pass reaches it; sums up until cleared
};

using Grads = std::vector<Tensor>;  ///< one for each input, undefined where none is needed
/// From the gradient of the output to those of the inputs, of their shapes.
using Backward = std::function<Grads(const Tensor& dy)>;
/// The same for several outputs; a gradient is undefined if nothing used that output.
using BackwardMany = std::function<Grads(std::span<const Tensor> dys)>;

/// Whether the tape of this thread records (true unless a NoGrad lives).
bool is_recording();

/// Switches recording on or off while it lives.
class Recording {
 public:
  explicit Recording(bool is_on);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

 private:
  bool before_;
};
/// Switches it off: nothing is saved for a backward pass.
struct NoGrad : Recording {
  NoGrad() : Recording(false) {}
};

/// True if recording and one of the inputs leads to a leaf.
bool needs_grad(std::initializer_list<const Tensor*> inputs);

/// Whether record() would do anything for an op of these inputs: put it on the tape, or name, count
/// or check it. Where not, an op does without what its closure would hold: while one token is
/// decoded those copies took 5 % of the thread that runs the model (EPYC, Zen 4, 2026-11).
bool needs_record(std::initializer_list<const Tensor*> inputs);

/// Puts an op on the tape and returns its output with its place in it. If no input leads to a leaf,
/// the output is returned as it is and `backward` is dropped.
Tensor record(const char* name, std::initializer_list<Tensor> inputs, const Tensor& output,
              Backward backward);
/// The same for an op with several outputs, which are updated in place.
void record_many(const char* name, std::span<const Tensor> inputs,
                 std::initializer_list<Tensor*> outputs, BackwardMany backward);

/// Runs the tape backwards from `loss` (gradient `seed` in every element), adds gradients to the
/// leaves, and empties the tape. Errors: internal if loss is not on the tape of this thread; shape,
/// naming the op, for a gradient of another shape than its input.
void backward(const Tensor& loss, float seed = 1.0f);

/// f(inputs), of which only the inputs are kept: the backward pass calls f again, records it, and
/// walks back through it at once (Chen et al. 2016, "Training Deep Nets with Sublinear Memory
/// Cost"). Gradients have the bits they would have without it. `f` must give the same result each
/// time, keep alive what it needs, and take everything that leads to a gradient by its inputs or
/// from leaves.
using Recomputed = std::function<std::vector<Tensor>(std::span<const Tensor> inputs)>;
std::vector<Tensor> recompute(std::span<const Tensor> inputs, const Recomputed& f);

/// Empties the tape of this thread without a backward pass.
void clear_tape();

/// Names of the ops on the tape, in order: for tests and profiles.
std::vector<std::string> tape_names();

/// While on, every recorded output is checked: the first that is not finite is a data error that
/// names the op and the layer (see LayerName).
void set_check_finite(bool check);

/// Names the layer whose ops are recorded while it lives.
class LayerName {
 public:
  explicit LayerName(const std::string& name);
  ~LayerName();
  LayerName(const LayerName&) = delete;
  LayerName& operator=(const LayerName&) = delete;
  /// The innermost name, or "".
  static const std::string& current();

 private:
  const std::string* before_;
};

}  // namespace heddle
