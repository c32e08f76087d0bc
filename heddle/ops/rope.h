// Rotary positions: queries and keys turned by angles that grow with their position.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "heddle/autograd/tape.h"

namespace heddle {

/// How fast each pair of a head turns, and the cosines and sines of the first positions.
class RopeTable {
 public:
  /// Positions beyond `positions` are computed when they are asked for.
  RopeTable(std::vector<double> frequencies, int64_t positions);
  int64_t pairs() const { return static_cast<int64_t>(frequencies_.size()); }
  /// [2 * pairs] cosines, then sines of a position; `own` has memory for those that are not here.
  const float* row(int64_t position, float* own) const;

 private:
  void compute(int64_t position, float* to) const;

  std::vector<double> frequencies_;
  int64_t positions_;
  std::vector<float> rows_;
};

/// theta^(-2j/d) for pairs j < d/2.
std::vector<double> rope_frequencies(int64_t head_width, double theta);

struct RopeOptions {
  int64_t head_width = 2;  ///< d, even
  int64_t columns = 0;     ///< leading columns that are turned, a multiple of d; the rest is copied
  double theta = 10000;    ///< base of the frequencies, if there is no table
  std::shared_ptr<const RopeTable> table = nullptr;
};

/// In each block of d columns, pair j < d/2 at position p turns by the angle a = p theta^(-2j/d),
/// or p times the table's frequency j:
///   y[j] = x[j] cos a - x[j + d/2] sin a,  y[j + d/2] = x[j] sin a + x[j + d/2] cos a
/// so that the product of a query and a key depends on the distance of their positions only.
/// x: [rows, columns or more], positions: [rows]    returns: the shape and dtype of x
/// Errors: shape if the sizes do not fit. Source: Su et al. 2021, "RoFormer", section 3.2.2; pairs
/// half a head apart as in LLaMA's checkpoints.
Tensor rope(const Tensor& x, std::span<const int32_t> positions, const RopeOptions& options);

}  // namespace heddle
