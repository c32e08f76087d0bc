// Adam, AdamW, SGD and Muon over all parameters, with an exponential moving average of the weights,
// and the learning rate as a function of the update.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "heddle/nn/parameters.h"

namespace heddle::train {

struct OptimizerOptions {
  bool is_sgd = false;   ///< with momentum; else Adam (Kingma & Ba 2015)
  bool is_muon = false;  ///< of matrices between hidden states, see muon.h; else what is_sgd says
  bool decoupled_decay = false;  ///< AdamW (Loshchilov & Hutter 2019), and the same of SGD
  double momentum = 0.9;         ///< of SGD and Muon
  bool nesterov = true;
  double beta1 = 0.9, beta2 = 0.98, eps = 1e-9;
  double weight_decay = 0;  ///< of what Parameter::decays() says: no vectors
  double ema_decay = 0;     ///< 0: no average is kept
};

/// Elements [begin, begin + size) of a parameter, by the order in memory.
struct ElementRange {
  int64_t begin = 0, size = 0;
};

/// Moments of one parameter, f32, of its shape; of a range of its elements, [size].
struct Moments {
  Tensor m;    ///< SGD's and Muon's velocity; undefined of a buffer
  Tensor v;    ///< undefined of a buffer, and in SGD and Muon
  Tensor ema;  ///< undefined if no average is kept. Of buffers too: the averaged weights' running
               ///< statistics are near the average of those of the weights.
};

class Optimizer {
 public:
  /// Errors: usage if options.is_muon and no parameter is a matrix between hidden states.
  Optimizer(nn::Parameters& parameters, const OptimizerOptions& options);
  /// One that updates these elements alone, a range for each of Parameters::all(); moments are
  /// theirs. Others are left as they are. Of Muon's matrices ranges are empty or whole. Errors:
  /// shape for ranges of another number, or elements that a parameter does not have.
  Optimizer(nn::Parameters& parameters, const OptimizerOptions& options,
            std::vector<ElementRange> ranges);

  /// sqrt of the sum of squares of all gradients, summed in fixed order in f64. Errors: shape for
  /// a gradient of another size than its parameter; so of step().
  double gradient_norm() const;
  /// The first parameter with a gradient that is not finite, or "".
  std::string first_bad_gradient() const;
  /// One update with gradients multiplied by `grad_scale`; clears the gradients.
  void step(double learning_rate, double grad_scale);
  /// The same by and by, with gradients from elsewhere: an update begins,
  void begin_step() { ++updates_; }
  /// then come all parameters, some at a time (their numbers). gradients: where those of each
  /// parameter's range begin, null where none came; of all parameters
  void step(double learning_rate, double grad_scale, std::span<float* const> gradients,
            std::span<const size_t> some);

  /// What step() multiplies the learning rate by for the parameter of that number; 1 at first.
  /// Errors: shape if there is none.
  void set_rate_factor(size_t parameter, double factor);

  /// Updates done so far.
  int64_t updates() const { return updates_; }
  void set_updates(int64_t updates) { updates_ = updates; }
  /// One for each of Parameters::all(), in that order.
  std::vector<Moments>& moments() { return moments_; }
  const std::vector<Moments>& moments() const { return moments_; }
  /// What is updated of each.
  const std::vector<ElementRange>& ranges() const { return ranges_; }

 private:
  bool goes_by_muon(const nn::Parameter& p) const;
  void update(size_t parameter, float* gradient, double learning_rate, double grad_scale,
              double ema_decay);

  nn::Parameters* parameters_;
  OptimizerOptions options_;
  std::vector<ElementRange> ranges_;
  std::vector<Moments> moments_;
  std::vector<double> rate_factors_;
  int64_t updates_ = 0;
};

/// Puts the average (or other values, one tensor a parameter) in place of the weights while it
/// lives.
class WeightSwap {
 public:
  WeightSwap(nn::Parameters& parameters, std::vector<Tensor> values);
  ~WeightSwap();
  WeightSwap(const WeightSwap&) = delete;
  WeightSwap& operator=(const WeightSwap&) = delete;

 private:
  void exchange();
  nn::Parameters* parameters_;
  std::vector<Tensor> values_;
};

struct ScheduleOptions {
  /// "noam": learning_rate * d_model^-0.5 * min(t^-0.5, t * warmup^-1.5) (Vaswani et al., eq. 3);
  /// "inverse_sqrt": learning_rate * min(t / warmup, sqrt(warmup / t));
  /// "cosine", "linear": a linear warm-up, then down to min_learning_rate at max_updates;
  /// "constant": a linear warm-up, then learning_rate.
  std::string kind = "inverse_sqrt";
  double learning_rate = 1;
  double min_learning_rate = 0;
  int64_t warmup = 4000;  ///< updates
  int64_t max_updates = 0;
  int64_t d_model = 512;
};

/// The rate of update t = 1, 2, ... Errors: usage for another kind, or one that falls until a
/// max_updates that is not there.
double learning_rate(const ScheduleOptions& options, int64_t update);

}  // namespace heddle::train
