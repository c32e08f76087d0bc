// What tells the positions of tokens apart.
#pragma once

#include <string>
#include <vector>

#include "heddle/nn/parameters.h"
#include "heddle/nn/run.h"

namespace heddle::nn {

struct SinusoidalOptions {
  /// "interleaved": sin in the even columns, cos in the odd ones (the paper); "halves": all sines,
  /// then all cosines (Marian, Tensor2Tensor).
  std::string layout = "interleaved";
  /// "paper": column pair i has frequency 10000^(-2i/d); "tensor2tensor": 10000^(-i/(d/2 - 1)).
  std::string frequencies = "paper";
  /// Position p has row p + offset of the formula; what stands before the first position is zero.
  int64_t offset = 0;
};

/// PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos(pos / 10000^(2i/d)), of `rows`
/// positions from `first` on, each `step` further.    returns: [rows, width] f32, computed in f64
/// Errors: shape if width is odd.    Source: Vaswani et al. 2017, section 3.5.
Tensor sinusoids(int64_t first, int64_t step, int64_t rows, int64_t width,
                 const SinusoidalOptions& options = {});
/// The same as a table of positions: [offset + positions, width].
Tensor sinusoidal_table(int64_t positions, int64_t width, const SinusoidalOptions& options = {});

/// The bucket of key position - query position = -distance .. distance: small distances have one of
/// their own, larger ones share those that are left by their logarithm, what is beyond has the
/// last. Half of the buckets are for keys behind the query, all where no key is. As transformers
/// computes them, in f32. Source: Raffel et al. 2020 (T5), section 2.1.
std::vector<int32_t> relative_buckets(int64_t buckets, int64_t distance, bool is_causal);

/// A vector for each position, to be added to the tokens: learned, sinusoidal, or none.
class Positions {
 public:
  static Positions none() { return {}; }
  /// table: [offset + positions, width]
  static Positions learned(Parameter& table, int64_t offset = 0);
  /// A table of so many positions, at most 2^24 numbers, is made now, a longer one when it is
  /// needed.
  static Positions sinusoidal(int64_t positions, int64_t width, const SinusoidalOptions& options);

  /// [offset() + needed or more, width], or undefined if there is none.
  /// Errors: data if a learned table has fewer than `needed` positions.
  Tensor table(int64_t needed, const Run& run) const;
  /// The row of position 0.
  int64_t offset() const { return options_.offset; }

 private:
  Parameter* learned_ = nullptr;
  Tensor fixed_;
  SinusoidalOptions options_;
};

}  // namespace heddle::nn
