// Matrices of doubles that a reader gives or looks at.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "heddle/base/error.h"
#include "heddle/tensor/tensor.h"

namespace heddle::inspect {

/// Row-major. An element may be -inf (hidden by a mask), none is NaN.
struct Matrix {
  int64_t rows = 0, cols = 0;
  std::vector<double> values;

  Matrix() = default;
  Matrix(int64_t r, int64_t c) : rows(r), cols(c), values(static_cast<size_t>(r * c)) {}
  double at(int64_t i, int64_t j) const { return values[i * cols + j]; }
  double& at(int64_t i, int64_t j) { return values[i * cols + j]; }
};

/// Reads "1 2; 3 4" (";" or a line break ends a row, spaces or commas part numbers), JSON
/// "[[1, 2], [3, 4]]", or the file of that name that holds one of the two.
/// Errors: usage, naming `flag` and the place, for anything else, rows of different lengths, no
/// number at all, NaN or infinity; data for a file that cannot be read.
Matrix parse_matrix(const std::string& text, const std::string& flag);

/// Of what a model computes, named as fmt::format() does: "the attention weights of layer {}".
/// Errors: data, with that name and what may be the cause, unless they are finite.
template <class... Args>
void check_finite(bool are_finite, fmt::format_string<Args...> name, const Args&... args) {
  if (are_finite) return;
  fail(ErrorKind::data,
       "{} are not finite; the model's weights are damaged, or too large for this precision (try "
       "`precision` f32)",
       fmt::vformat(name, fmt::make_format_args(args...)));
}

/// |to - from| / |from|, lengths of vectors of equal size; 0 where `from` is 0.
double relative_change(std::span<const float> from, std::span<const float> to);

/// The columns [begin, begin + count) of x: [rows, width].
Matrix matrix_of(const Tensor& x, int64_t begin, int64_t count);
inline Matrix matrix_of(const Tensor& x) { return matrix_of(x, 0, x.size(1)); }

}  // namespace heddle::inspect
