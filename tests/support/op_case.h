// A case of an op, declared once: gives its forward check, its gradient by finite differences,
// fused against plain, equal bits for any threads, indifference to what memory held before, and,
// made for larger sizes, its time (bench/ops.cc).
#pragma once

#include <array>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "heddle/autograd/tape.h"
#include "heddle/tensor/image_size.h"

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
  /// The definition in double for the first output. A case has this oracle, or the one above.
  std::function<std::vector<double>(const std::vector<std::vector<float>>& inputs)> plain = {};
  /// Inputs that are f32 whatever the op computes in (biases, gammas).
  std::vector<int> always_f32 = {};
  bool has_bf16 = true;
  float offset = 0;  ///< added to every input: away from kinks and poles
};

/// What sizes the cases are made for; these are the small and ragged ones that are checked.
struct OpSizes {
  Shape elements = {5, 19};                     ///< element by element
  Shape moved = {6, 10};                        ///< views, slices, joints
  std::array<int64_t, 3> product = {7, 13, 5};  ///< [0, 1] times [1, 2]
  std::array<int64_t, 2> linear = {24, 10};     ///< in, out
  std::vector<int64_t> linear_rows = {7, 300};
  Shape reduced = {6, 7};
  Shape softmax = {4, 21};
  Shape norm = {6, 16};                        ///< rows and width, of losses too
  int64_t vocab = 13;                          ///< of losses
  Shape table = {9, 12};                       ///< of embeddings
  int64_t tokens = 6;                          ///< looked up
  std::vector<int64_t> sentences = {3, 1, 7};  ///< of self-attention
  std::vector<int64_t> queries = {2, 0, 4, 1}, keys = {3, 2, 5, 1};   ///< of attention
  std::vector<int64_t> contexts = {3, 1, 7}, windows = {1, 3, 1000};  ///< of windowed attention
  int64_t width = 16, heads = 2;                                      ///< of attention
  std::vector<ImageSize> images = {{5, 4}, {3, 7}, {4, 3}};           ///< of windows over pixels
  int64_t channels = 3;
};

/// Every case of every op, for these sizes; tests/ops/cases.cc.
std::vector<OpCase> op_cases(const OpSizes& sizes);
/// The same for the sizes that are checked.
const std::vector<OpCase>& op_cases();

/// The inputs of a case, of normal values; leaves[i] takes the gradient of input i.
Tensors case_inputs(const OpCase& c, DType dtype, std::span<Leaf> leaves);

void expect_forward_is_right(const OpCase& c);
void expect_gradients_are_finite_differences(const OpCase& c);
void expect_equals_reference(const OpCase& c);
/// How far outputs and gradients in bf16 are from those in f32 of the same rounded inputs: the
/// largest |difference| / |value| of a tensor (Euclidean norms; the rounding of the case's largest
/// gradient is allowed for where a tensor's own is small).
double bf16_error(const OpCase& c);
/// What it may be: a few roundings of 2^-9 after each other; a gradient off by a tenth is not.
inline constexpr double kMostBf16Error = 0.04;
void expect_same_bits_for_any_threads(const OpCase& c, DType dtype);
void expect_memory_does_not_matter(const OpCase& c, DType dtype);

}  // namespace heddle
