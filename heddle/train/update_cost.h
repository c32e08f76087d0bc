// What an update costs: the memory of its parts, and its operations beside what the CPU could do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "heddle/nn/parameters.h"
#include "heddle/train/optimizer.h"

namespace heddle::train {

/// Bytes of tensors that training holds.
struct UpdateMemory {
  int64_t weights = 0;      ///< f32, and the bf16 copies that are computed with
  int64_t gradients = 0;    ///< f32
  int64_t optimizer = 0;    ///< moments
  int64_t average = 0;      ///< the moving average of the weights
  int64_t activations = 0;  ///< the most that stood beside these: what the backward pass reads
  int64_t total() const { return weights + gradients + optimizer + average + activations; }
  /// A head, then a line for each part that is there: its name, MB, share of the whole.
  std::vector<std::string> table() const;
};

/// Looks at the first update that a process does, and passes over the others.
class UpdateCost {
 public:
  UpdateCost() = default;
  ~UpdateCost();
  UpdateCost(const UpdateCost&) = delete;
  UpdateCost& operator=(const UpdateCost&) = delete;

  /// From here on operations (unless a profile is under way already) and memory are counted.
  void begin();
  /// To be called when the gradients are there; says what memory goes to. `samples`: tokens or
  /// images that all ranks together do meanwhile. summed: bytes of gradients outside of the
  /// parameters
  void end(nn::Parameters& parameters, const Optimizer& optimizer, int64_t samples,
           int64_t summed = 0);

  /// Known behind end().
  const UpdateMemory& memory() const { return memory_; }
  /// Share of what all threads do at most with factors of this dtype, registers times registers,
  /// that this rank's part of so many samples a second takes, rounded to 1e-4: operations of
  /// products and attention, those that are computed again (--recompute) counted again. Measures
  /// that peak at the first call (0.05 s). Nothing where operations or the peak are not known.
  std::optional<double> share_of_peak(double samples_per_second, DType factors);
  /// "12,345 tok/s (41 % of peak)"; on a terminal of less than 100 columns, which has no room for a
  /// bar beside it, "12,345 tok/s". counted: "tokens" or "images"
  std::string speed(double samples_per_second, std::string_view counted, DType factors);

 private:
  bool counts_ = false, is_known_ = false;
  UpdateMemory memory_;
  double operations_ = 0;  // of a sample; 0: not known
  std::optional<double> peak_;
};

}  // namespace heddle::train
