// NumPy's default generator, so that resamples drawn here are those that Python's tools draw.
#pragma once

#include <cstdint>

namespace heddle::train {

/// numpy.random.default_rng(seed) for seeds below 2^32: PCG-XSL-RR 128/64 behind NumPy's
/// SeedSequence.
/// Source: O'Neill 2014, "PCG: A Family of Simple Fast Space-Efficient Statistically Good
/// Algorithms"; NumPy's documentation of PCG64 and SeedSequence.
class Pcg64 {
 public:
  explicit Pcg64(uint32_t seed);

  /// The next of .integers(0, n), n from 1 to 2^32 - 1, without bias (Lemire 2019).
  uint32_t below(uint32_t n);

 private:
  __extension__ using Wide = unsigned __int128;

  uint64_t next64();
  uint32_t next32();

  Wide state_ = 0, increment_ = 0;
  uint64_t kept_ = 0;  // of the last 64 bits the upper half, which comes next
  bool has_kept_ = false;
};

}  // namespace heddle::train
