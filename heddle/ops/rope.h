// Rotary positions: queries and keys turned by angles that grow with their position.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heddle/autograd/tape.h"
#include "heddle/base/json/fields.h"

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

/// How rotary positions turn the heads. The fields are those that Hugging Face writes as rope_theta
/// and rope_scaling, or, since transformers 5, as rope_parameters.
struct RotaryOptions {
  double theta = 10000;
  /// "default"; "linear": positions divided by factor (Chen et al. 2023); "llama3": only slow waves
  /// are, those of original_positions / high_freq_factor positions and less stay, between this and
  /// original_positions / low_freq_factor the two are blended (Llama 3.1).
  std::string type = "default";
  double factor = 1, low_freq_factor = 1, high_freq_factor = 4;
  std::optional<int64_t> original_positions = {};

  template <class V>
  void fields(V& v) {
    v("rope_theta", theta, "base of the frequencies of rotary positions", above(1));
    v("rope_type", type, "how a context is stretched beyond that of training",
      one_of({"default", "linear", "llama3"}));
    v("rope_factor", factor, "linear, llama3: how far it is stretched", at_least(1));
    v("rope_low_freq_factor", low_freq_factor, "llama3: longer waves are stretched", above(0));
    v("rope_high_freq_factor", high_freq_factor, "llama3: shorter waves stay", above(0));
    v("rope_original_max_position_embeddings", original_positions,
      "llama3: context in training; none: max_position_embeddings", at_least(1));
  }
};

/// Those of a model of so many positions, as its options stretch them.
std::vector<double> rope_frequencies(int64_t head_width, int64_t positions,
                                     const RotaryOptions& options);

/// A table of the first `positions`, for all layers of a model. Errors: shape if head_width is odd.
std::shared_ptr<const RopeTable> rotary_table(int64_t head_width, int64_t positions,
                                              const RotaryOptions& options);

struct RopeOptions {
  int64_t head_width = 2;  ///< d, even
  int64_t columns = 0;     ///< leading columns that are turned, a multiple of d; the rest is copied
  std::shared_ptr<const RopeTable> table = nullptr;  ///< of d/2 pairs; must be given
};

/// In each block of d columns, pair j < d/2 at position p turns by the angle a = p times the
/// table's frequency j:
///   y[j] = x[j] cos a - x[j + d/2] sin a,  y[j + d/2] = x[j] sin a + x[j + d/2] cos a
/// so that the product of a query and a key depends on the distance of their positions only.
/// x: [rows, columns or more], positions: [rows]    returns: the shape and dtype of x
/// Errors: shape if the sizes do not fit. Source: Su et al. 2021, "RoFormer", section 3.2.2; pairs
/// half a head apart as in LLaMA's checkpoints.
Tensor rope(const Tensor& x, std::span<const int32_t> positions, const RopeOptions& options);

}  // namespace heddle
