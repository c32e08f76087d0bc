// A case of an op, declared once: gives its forward check, its gradient by finite differences,
// fused against plain, equal bits for any threads, and indifference to what memory held before.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "heddle/autograd/tape.h"

namespace heddle {

using Tensors = std::vector<Tensor>;
using OpFunction = std::function<Tensors(const Tensors& inputs)>;

/// One op over given sizes.
struct OpCase {
  std::string op;       ///< its name on the tape
  std::string variant;  ///< what is special here; unique within the op
  std::vector<Shape> shapes;
  OpFunction function;
  OpFunction reference = {};  ///< the plain definition by other ops, if the op is a fused one
  /// The definition in double for the first output, if it is simple.
  std::function<std::vector<double>(const std::vector<std::vector<float>>& inputs)> plain = {};
  /// Inputs that are f32 whatever the op computes in (biases, gammas).
  std::vector<int> always_f32 = {};
  bool has_bf16 = true;
  float offset = 0;  ///< added to every input: away from kinks and poles
};

/// Every case of every op.
const std::vector<OpCase>& op_cases();

void expect_forward_is_right(const OpCase& c);
void expect_gradients_are_finite_differences(const OpCase& c);
void expect_equals_reference(const OpCase& c, DType dtype);
void expect_same_bits_for_any_threads(const OpCase& c, DType dtype);
void expect_memory_does_not_matter(const OpCase& c, DType dtype);

}  // namespace heddle
