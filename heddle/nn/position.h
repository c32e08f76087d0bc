// What tells the places of words apart.
#pragma once

#include <string>

#include "heddle/nn/parameters.h"
#include "heddle/nn/run.h"

namespace heddle::nn {

struct SinusoidalOptions {
  /// "interleaved": sin in the even columns, cos in the odd ones (the paper); "halves": all sines,
  /// then all cosines (Marian, Tensor2Tensor).
  std::string layout = "interleaved";
  /// "paper": column pair i has frequency 10000^(-2i/d); "tensor2tensor": 10000^(-i/(d/2 - 1)).
  std::string frequencies = "paper";
};

/// PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos(pos / 10000^(2i/d)).
/// returns: [positions, width] f32, computed in f64    Errors: shape if width is odd.
/// Source: Vaswani et al. 2017, section 3.5.
Tensor sinusoidal_table(int64_t positions, int64_t width, const SinusoidalOptions& options = {});

/// A vector for each place, to be added to the words: learned, sinusoidal, or none.
class Positions {
 public:
  static Positions none() { return {}; }
  /// table: [positions, width]
  static Positions learned(Parameter& table);
  /// A table of so many positions is made now, a longer one when it is needed.
  static Positions sinusoidal(int64_t positions, int64_t width, const SinusoidalOptions& options);

  /// [needed or more, width], or undefined if there is none.
  /// Errors: data if a learned table has fewer than `needed` positions.
  Tensor table(int64_t needed, const Run& run) const;

 private:
  Parameter* learned_ = nullptr;
  Tensor fixed_;
  SinusoidalOptions options_;
};

}  // namespace heddle::nn
